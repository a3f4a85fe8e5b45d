//! Reassembly through the whole NAT (RFC 791, RFC 815).

use slirp_nat::link::Frame;

use crate::prelude::*;

const PEER: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 77), 5000);

fn datagram(data: &[u8]) -> Vec<u8> {
    build::udp_datagram((GUEST_IP, 6000), PEER, data)
}

fn ip() -> build::IpBuilder {
    build::IpBuilder::new(PEER.0, build::UDP)
}

/// Every order of three things.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

fn in_every_order(kind: HostKind, len: usize, cuts: &[usize]) {
    for order in ORDERS {
        let mut lab = Lab::with(kind, |setup| setup.config.mtu = 65_520);
        let data = pattern(len);
        let fragments = ip().fragments(&datagram(&data), cuts);
        for index in order {
            assert!(lab.world().sent_datagrams().is_empty(), "sent too early in {order:?}");
            lab.input(&fragments[index]);
        }
        let sent = one(lab.world().take_sent_datagrams());
        assert!(sent.data == data, "{len} bytes in the order {order:?}");
        assert_eq!(lab.counters().reassembled, 1);
    }
}

on_both_hosts! {
    /// The history: beyond 4 KiB the heap was corrupted.
    fn more_than_4_kib_in_every_order_of_three_fragments(kind) {
        in_every_order(kind, 6000, &[2000, 4000]);
    }

    /// The history: offsets were signed, and beyond 32 KiB fragments sorted wrongly.
    fn more_than_32_kib_in_every_order_of_three_fragments(kind) {
        in_every_order(kind, 60_000, &[20_000, 40_000]);
        in_every_order(kind, 65_507, &[16, 40_000]);
    }

    /// NFS over UDP: 8 KiB in MTU-sized pieces, backwards and in one batch.
    fn a_train_that_comes_backwards(kind) {
        let mut lab = Lab::new(kind);
        let data = pattern(65_507);
        let mut fragments = ip().fragments_for_mtu(&datagram(&data), 1500);
        fragments.reverse();
        lab.input_batch(&fragments);
        assert!(one(lab.world().take_sent_datagrams()).data == data, "the bytes");
    }

    /// Identical duplicates are harmless.
    fn duplicates_are_harmless(kind) {
        let mut lab = Lab::new(kind);
        let data = pattern(4000);
        let fragments = ip().fragments(&datagram(&data), &[1024, 2048]);
        for index in [0, 0, 2, 0, 2, 1] {
            lab.input(&fragments[index]);
        }
        assert_eq!(one(lab.world().take_sent_datagrams()).data, data);
    }

    /// CVE-2020-1983 and its kin: overlaps that differ make no datagram (RFC 5722 4). It has no
    /// checksum that would tell.
    fn differing_overlaps_make_no_datagram(kind) {
        let mut whole = datagram(&pattern(3000));
        whole[6..8].fill(0);
        let fragments = ip().fragments(&whole, &[1024, 2048]);
        let mut forged = ip();
        (forged.offset, forged.more) = (512, true);
        let forged = forged.frame(&[0xee; 1024]);
        for place in 0..3 {
            let mut lab = Lab::new(kind);
            let mut train: Vec<&Vec<u8>> = fragments.iter().collect();
            train.insert(place, &forged);
            lab.input_batch(&train);
            assert!(lab.world().sent_datagrams().is_empty(), "forged before {place}");
            assert!(lab.dropped(DropReason::Fragment) > 0);
            let mut again = ip();
            again.id += 1;
            lab.input_batch(&again.fragments(&whole, &[1024, 2048]));
            assert_eq!(one(lab.world().take_sent_datagrams()).data, whole[8..]);
        }
    }

    /// RFC 791: beyond 65,535 bytes there is no datagram ("ping of death"); libslirp.
    fn a_total_beyond_65535_bytes_is_refused(kind) {
        let mut lab = Lab::new(kind);
        let mut last = ip();
        last.offset = 65_528;
        lab.input(&last.frame(&[0; 1000]));
        assert_eq!(lab.dropped(DropReason::Fragment), 1);
        let mut first = ip();
        first.more = true;
        for step in 0..46 {
            first.offset = step * 1480;
            lab.input(&first.frame(&[0; 1480]));
        }
        assert!(lab.world().sent_datagrams().is_empty());
        assert_eq!(lab.counters().reassembled, 0);
    }

    /// A fragment but the last has a multiple of eight bytes, and some.
    fn malformed_fragments_are_dropped(kind) {
        let mut lab = Lab::new(kind);
        let mut odd = ip();
        odd.more = true;
        for len in [0, 7, 1001] {
            lab.input(&odd.frame(&vec![0; len]));
        }
        assert_eq!(lab.dropped(DropReason::Fragment), 3);
    }

    /// libslirp: 60,000 first fragments. The memory is bounded, the oldest goes.
    fn a_flood_of_first_fragments_is_bounded(kind) {
        let mut lab = Lab::with(kind, |setup| setup.fragments = 4);
        let mut first = ip();
        first.more = true;
        for id in 0..60_000 {
            first.id = id;
            lab.input(&first.frame(&[0; 64]));
        }
        let data = pattern(3000);
        let mut last = ip();
        last.id = 60_001;
        lab.input_batch(&last.fragments(&datagram(&data), &[1480]));
        assert_eq!(one(lab.world().take_sent_datagrams()).data, data);
        assert!(lab.nat.stats().dropped_total() >= 59_990, "what was pushed out is counted");
    }

    /// RFC 1122 3.3.2: time is over when it is, whether or not anybody was told.
    fn a_late_fragment_joins_nothing_though_no_timer_was_served(kind) {
        let mut lab = Lab::new(kind);
        let fragments = ip().fragments(&datagram(&pattern(3000)), &[1480]);
        lab.input(&fragments[0]);
        let late = lab.now().after(seconds(31));
        lab.nat.receive(late, &[Frame::new(&fragments[1])], &mut *lab.host, &mut lab.link);
        assert!(lab.world().sent_datagrams().is_empty());
        assert_eq!(lab.dropped(DropReason::FragmentExpired), 1);
        assert_eq!(lab.take_one_icmp().kind, 11);
    }

    /// RFC 792, RFC 1122 3.3.2: after 30 s the guest is told, if the first fragment was there.
    fn an_incomplete_datagram_times_out(kind) {
        let mut lab = Lab::new(kind);
        let fragments = ip().fragments(&datagram(&pattern(3000)), &[1024, 2048]);
        lab.input(&fragments[0]);
        lab.advance(seconds(29));
        lab.expect_nothing();
        lab.advance(seconds(2));
        let icmp = lab.take_one_icmp();
        assert_eq!((icmp.kind, icmp.code), (11, 1));
        assert_eq!(icmp.data[20..22], 6000_u16.to_be_bytes(), "the first fragment is quoted");
        lab.input(&fragments[1]);
        lab.advance(seconds(40));
        lab.expect_nothing();
        assert_eq!(lab.dropped(DropReason::FragmentExpired), 2);
    }

    /// RFC 3168 5.3: a mark on any fragment is a mark on the datagram; libslirp.
    fn a_congestion_mark_survives_reassembly(kind) {
        let mut lab = Lab::new(kind);
        let whole = datagram(&pattern(3000));
        let mut marked = ip();
        marked.tos = 3;
        let plain = build::IpBuilder { tos: 2, ..ip() }.fragments(&whole, &[1024, 2048]);
        let marks = marked.fragments(&whole, &[1024, 2048]);
        lab.input_batch(&[&plain[0], &marks[1], &plain[2]]);
        assert_eq!(one(lab.world().take_sent_datagrams()).meta.ecn, 3);
    }

    /// libslirp 4.9.4: fragments whose headers differ in length leaked stale memory.
    fn headers_of_differing_lengths(kind) {
        let mut lab = Lab::new(kind);
        let data = pattern(3000);
        let whole = datagram(&data);
        let padded = build::IpBuilder { options: vec![1; 8], ..ip() };
        let plain = ip().fragments(&whole, &[1024, 2048]);
        let with_options = padded.fragments(&whole, &[1024, 2048]);
        lab.input_batch(&[&plain[1], &with_options[0], &plain[2]]);
        assert_eq!(one(lab.world().take_sent_datagrams()).data, data);
    }

    /// TCP can come in fragments, too.
    fn a_tcp_segment_in_fragments(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let data = pattern(1400);
        let frame = one(guest.segments(&data));
        let mut fragmented = build::IpBuilder::new(*SERVER.ip(), build::TCP);
        fragmented.id = 9;
        lab.input_batch(&fragmented.fragments(&frame[34..], &[512, 1024]));
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), data);
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
    }

    /// The checksum is checked over the whole.
    fn a_wrong_checksum_of_the_whole_is_dropped(kind) {
        let mut lab = Lab::new(kind);
        let mut whole = datagram(&pattern(3000));
        whole[2000] ^= 1;
        lab.input_batch(&ip().fragments(&whole, &[1024, 2048]));
        assert!(lab.world().sent_datagrams().is_empty());
        assert_eq!(lab.dropped(DropReason::UdpChecksum), 1);
    }

    /// Without memory for it there is no reassembly, and nothing else changes.
    fn without_memory_fragments_are_dropped(kind) {
        let mut lab = Lab::with(kind, |setup| {
            setup.fragments = 0;
            setup.fragment_memory = 0;
        });
        lab.input_batch(&ip().fragments(&datagram(&pattern(3000)), &[1024, 2048]));
        assert!(lab.world().sent_datagrams().is_empty());
        assert_eq!(lab.dropped(DropReason::FragmentMemory), 3);
        lab.exchange(&[build::udp(6000, PEER, b"whole")]);
        assert_eq!(one(lab.world().take_sent_datagrams()).data, b"whole");
    }

    /// RFC 791 3.2: the header of the whole is that of the first fragment, whichever comes last.
    fn the_ttl_is_that_of_the_first_fragment(kind) {
        let whole = datagram(&pattern(3000));
        let first = build::IpBuilder { ttl: 9, ..ip() }.fragments(&whole, &[1024, 2048]);
        let others = build::IpBuilder { ttl: 200, ..ip() }.fragments(&whole, &[1024, 2048]);
        for train in [[&first[0], &others[1], &others[2]], [&others[2], &others[1], &first[0]]] {
            let mut lab = Lab::new(kind);
            lab.input_batch(&train);
            assert_eq!(one(lab.world().take_sent_datagrams()).meta.ttl, 8);
        }
    }

    /// RFC 1858 3: ports in one fragment, flags in the next. Nothing is decided before the whole.
    fn a_first_fragment_too_short_for_its_tcp_header(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let data = pattern(100);
        let frame = one(guest.segments(&data));
        let mut tiny = build::IpBuilder::new(*SERVER.ip(), build::TCP);
        tiny.id = 9;
        let fragments = tiny.fragments(&frame[34..], &[8, 16, 24]);
        lab.input_batch(&fragments[..3]);
        lab.expect_nothing();
        lab.input(&fragments[3]);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), data);
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
    }

    /// A whole that is too short for its UDP or TCP header is refused as one that came whole.
    fn a_datagram_too_short_for_its_transport_header_is_dropped(kind) {
        let mut lab = Lab::new(kind);
        let tcp = build::IpBuilder { protocol: build::TCP, ..ip() };
        lab.input_batch(&tcp.fragments(&[0x11; 19], &[8]));
        let mut long_header = [0; 20];
        long_header[12] = 0xf0;
        lab.input_batch(&tcp.fragments(&long_header, &[16]));
        assert_eq!(lab.dropped(DropReason::TcpHeader), 2);
        // The UDP length is that of a datagram of which only a part was sent.
        lab.input_batch(&ip().fragments(&datagram(&pattern(100))[..64], &[8]));
        assert_eq!(lab.dropped(DropReason::UdpHeader), 1);
        assert_eq!(lab.counters().reassembled, 3);
        assert!(lab.world().sent_datagrams().is_empty());
    }

    /// A last fragment at another place than the last one before.
    fn a_last_fragment_that_shrinks_or_grows_the_datagram_drops_it(kind) {
        let whole = datagram(&pattern(3000));
        let fragments = ip().fragments(&whole, &[1024, 2048]);
        let mut other = ip();
        other.offset = 2048;
        for len in [8, 900, 1008] {
            let mut lab = Lab::new(kind);
            lab.input_batch(&[&fragments[2], &other.frame(&vec![0; len]), &fragments[0], &fragments[1]]);
            assert!(lab.world().sent_datagrams().is_empty());
            assert_eq!(lab.dropped(DropReason::Fragment), 3);
        }
    }

    /// RFC 1858 4: the second fragment rewrites a part of the first.
    fn a_fragment_at_offset_8_cannot_change_what_came_before(kind) {
        let mut lab = Lab::new(kind);
        let whole = datagram(&pattern(3000));
        let fragments = ip().fragments(&whole, &[1024, 2048]);
        let mut forged = ip();
        (forged.offset, forged.more) = (8, true);
        lab.input_batch(&[&fragments[0], &forged.frame(&[0xee; 1016]), &fragments[1], &fragments[2]]);
        assert!(lab.world().sent_datagrams().is_empty());
        assert_eq!(lab.dropped(DropReason::Fragment), 3);
    }

    /// One identification again: after completion, beside another protocol, and after expiry.
    fn an_identification_is_used_again(kind) {
        let mut lab = Lab::new(kind);
        for round in 0..3 {
            let data = vec![round; 2000];
            lab.input_batch(&ip().fragments(&datagram(&data), &[1024]));
            assert_eq!(one(lab.world().take_sent_datagrams()).data, data);
        }
        let data = pattern(2000);
        let fragments = ip().fragments(&datagram(&data), &[1024]);
        let other = build::IpBuilder { protocol: 99, ..ip() };
        lab.input(&fragments[0]);
        lab.input_batch(&other.fragments(&[0xee; 2000], &[1024]));
        lab.input(&fragments[1]);
        assert_eq!(one(lab.world().take_sent_datagrams()).data, data);

        lab.exchange(&[other.fragments(&[0xee; 2000], &[1024])[0].clone()]);
        lab.advance(seconds(31));
        lab.take();
        lab.input_batch(&fragments);
        assert_eq!(one(lab.world().take_sent_datagrams()).data, data);
    }

    /// RFC 792, RFC 1122 3.2.2: of a datagram without its beginning, or for many, nobody is told.
    fn no_error_is_sent_about_an_unknown_datagram_or_one_for_many(kind) {
        let mut lab = Lab::new(kind);
        let whole = datagram(&pattern(3000));
        lab.input(&ip().fragments(&whole, &[1024, 2048])[1]);
        for dst in [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 251)] {
            let many = build::IpBuilder { dst, ..ip() };
            lab.input(&many.fragments(&whole, &[1024, 2048])[0]);
        }
        lab.advance(seconds(31));
        lab.expect_nothing();
        assert_eq!(lab.dropped(DropReason::FragmentExpired), 3);
    }
}
