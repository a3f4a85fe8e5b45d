//! Options about what the guest boots over the network.

use core::net::Ipv4Addr;

use slirp_nat::{Config, MAX_BOOT_FILE_LEN, MAX_NAME_LEN};

/// What DHCP and BOOTP tell a boot loader.
#[derive(Debug, clap::Args)]
pub(crate) struct Boot {
    /// Tell the guest to boot this file, which need not be a path: iPXE takes http://... as well
    #[arg(long, value_name = "NAME-OR-URL", value_parser = bounded::<MAX_BOOT_FILE_LEN>)]
    pub(crate) bootfile: Option<heapless::String<MAX_BOOT_FILE_LEN>>,
    /// Tell the guest to fetch the boot file from this server [default: the router]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) next_server: Option<Ipv4Addr>,
    /// Name of that server; if it is an address, and --next-server is not given, it is the server
    #[arg(long, value_name = "NAME", value_parser = bounded::<MAX_NAME_LEN>)]
    pub(crate) tftp_server_name: Option<heapless::String<MAX_NAME_LEN>>,
}

impl Boot {
    /// Puts into `config` what was given.
    pub(crate) fn apply(&self, config: &mut Config) {
        config.boot_file = self.bootfile.clone().unwrap_or_default();
        config.tftp_server_name = self.tftp_server_name.clone().unwrap_or_default();
        config.next_server = self.next_server.or_else(|| config.tftp_server_name.parse().ok());
    }
}

/// A text of up to `N` bytes.
fn bounded<const N: usize>(text: &str) -> Result<heapless::String<N>, String> {
    text.try_into().map_err(|_| format!("more than {N} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(boot: &Boot) -> Config {
        let mut config = Config::default();
        boot.apply(&mut config);
        config
    }

    #[test]
    fn a_server_that_is_named_by_its_address_is_the_next_server() {
        let named = |name: &str, next_server| Boot {
            bootfile: None,
            next_server,
            tftp_server_name: Some(bounded(name).unwrap()),
        };
        let (near, far) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        assert_eq!(applied(&named("192.0.2.1", None)).next_server, Some(near));
        assert_eq!(applied(&named("192.0.2.1", Some(far))).next_server, Some(far));
        assert_eq!(applied(&named("tftp.example", None)).next_server, None);
    }

    #[test]
    fn nothing_is_told_unless_it_is_given() {
        let config = applied(&Boot { bootfile: None, next_server: None, tftp_server_name: None });
        assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
    }
}
