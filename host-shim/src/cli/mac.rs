//! Station addresses on the command line.

use ipstack::wire::MacAddr;

/// Reads `52:54:00:12:34:56`.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn parse(text: &str) -> Result<MacAddr, String> {
    let octet = |part: &str| {
        let is_hex = part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u8::from_str_radix(part, 16).ok()).flatten()
    };
    let octets: Option<Vec<u8>> = text.split(':').map(octet).collect();
    let mac = octets.and_then(|octets| octets.try_into().ok()).map(MacAddr);
    match mac {
        None => Err("expected six bytes in hexadecimal, as 52:54:00:12:34:56".to_owned()),
        Some(mac) if mac.is_multicast() || mac == MacAddr::ZERO => {
            Err("a card cannot have a group's address or none".to_owned())
        }
        Some(mac) => Ok(mac),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_six_bytes_of_one_station() {
        assert_eq!(parse("52:54:0:12:Ab:ff"), Ok(MacAddr([0x52, 0x54, 0, 0x12, 0xab, 0xff])));
        for wrong in ["", "52:54:00:12:34", "52:54:00:12:34:56:78", "52:54:00:12:34:567"] {
            assert!(parse(wrong).is_err_and(|text| text.contains("six bytes")), "{wrong}");
        }
        for wrong in ["+2:54:00:12:34:56", "52:54::12:34:56", "52-54-00-12-34-56"] {
            assert!(parse(wrong).is_err_and(|text| text.contains("six bytes")), "{wrong}");
        }
        for nobody in ["01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"] {
            assert!(parse(nobody).is_err_and(|text| text.contains("group")), "{nobody}");
        }
    }
}
