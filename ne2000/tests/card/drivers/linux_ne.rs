//! Linux `ne` on ISA: tells an NE1000 from an NE2000 by pairs of bytes in the PROM, and finds its
//! interrupt by a transfer of no bytes.

use ne2000::Model;

use super::lib8390::{Lib8390, Port};
use crate::guest::{Guest, MAC, RDC, RST, frame};

/// Reads the PROM in byte mode; 16 bytes, and whether the card is sixteen bits wide.
fn probe(guest: &mut Guest) -> ([u8; 16], bool) {
    let port = guest.inb(0x1F);
    guest.outb(0x1F, port);
    guest.await_isr(RST);
    guest.outb(0x07, 0xFF);
    guest.outs(&[(0x00, 0x21), (0x0E, 0x48), (0x0A, 0), (0x0B, 0), (0x0F, 0), (0x07, 0xFF)]);
    guest.outs(&[(0x0C, 0x20), (0x0D, 0x02), (0x0A, 32), (0x0B, 0), (0x08, 0), (0x09, 0)]);
    guest.outb(0x00, 0x0A);
    let prom: Vec<u8> = (0..32).map(|_| guest.inb(0x10)).collect();
    let pairs = prom.as_chunks::<2>().0;
    let wide = pairs.iter().all(|[first, second]| first == second);
    let bytes: Vec<u8> =
        if wide { pairs.iter().map(|pair| pair[0]).collect() } else { prom[..16].to_vec() };
    if wide {
        guest.outb(0x0E, 0x49);
    }
    (bytes.try_into().expect("sixteen bytes"), wide)
}

#[test]
fn probe_tells_ne1000_from_ne2000() {
    for (model, wanted) in [(Model::Ne1000, false), (Model::Ne2000, true)] {
        let (prom, wide) = probe(&mut Guest::new(model));
        assert_eq!(wide, wanted);
        assert_eq!((&prom[..6], &prom[14..]), (&MAC[..], &[0x57; 2][..]));
    }
}

#[test]
fn zero_length_read_finds_the_interrupt() {
    for model in [Model::Ne1000, Model::Ne2000] {
        let mut guest = Guest::new(model);
        probe(&mut guest);
        guest.outb(0x07, 0xFF);
        assert!(!guest.irq());
        guest.outs(&[(0x0F, 0x50), (0x0A, 0), (0x0B, 0), (0x00, 0x0A)]);
        assert!(guest.irq());
        guest.outs(&[(0x0F, 0), (0x07, RDC)]);
        assert!(!guest.irq());
    }
}

#[test]
fn frames_pass_on_both_cards() {
    for (model, port, start, stop) in
        [(Model::Ne1000, Port::Bytes, 0x20, 0x40), (Model::Ne2000, Port::Words, 0x40, 0x80)]
    {
        let mut guest = Guest::new(model);
        probe(&mut guest);
        let mut driver = Lib8390::new(guest, port, start, stop);
        driver.open();
        for seed in 0..50 {
            let sent = frame(MAC, 60 + usize::from(seed) * 29, seed);
            driver.guest.receive(&sent);
            driver.interrupt();
            assert_eq!(driver.received.pop(), Some(sent.clone()));
            driver.xmit(&sent);
            driver.guest.pass(2_000);
            driver.interrupt();
            assert_eq!(driver.guest.sent.pop(), Some(sent));
        }
        assert!(driver.complaints.is_empty(), "{:?}", driver.complaints);
    }
}
