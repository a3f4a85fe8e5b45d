//! Tables of bounded size: eviction, idle flows, and the memory handed over.

use core::mem::size_of;

use ipstack::frag::FragmentSlot;
use slirp_nat::{ConfigError, Flow, ForwardSlot, Lease, Nat, Permit, Recovery, Storage};
use slirpkit_tests::lab::{SECRET, Setup};

use crate::prelude::*;

/// Opens a connection and leaves it in TIME_WAIT.
fn time_wait(lab: &mut Lab, port: u16) {
    let mut guest = lab.connect(port, SERVER);
    let stream = lab.world().stream_to(SERVER);
    lab.world().ends(stream);
    guest.drain(lab);
    guest.send_fin(lab);
    lab.settle();
    lab.take();
    lab.advance(millis(10));
}

fn half_open(lab: &mut Lab, port: u16) {
    let guest = TcpGuest::new(port, OTHER);
    let answer = one(lab.exchange(&[guest.syn(Some(1460)).frame()]));
    assert!(answer.tcp().is_some_and(Tcp::is_syn_ack), "{answer:?}");
    lab.advance(millis(10));
}

fn udp(lab: &mut Lab, port: u16) {
    lab.exchange(&[build::udp(port, (*SERVER.ip(), 7), b"x")]);
    lab.advance(millis(10));
}

/// Whether a segment of the guest at `port` still finds its flow to `remote`.
fn is_half_open(lab: &mut Lab, port: u16) -> bool {
    let again = TcpGuest::new(port, OTHER).syn(Some(1460)).frame();
    let connects = lab.world().connects();
    lab.exchange(&[again]);
    lab.world().connects() == connects
}

on_both_hosts! {
    /// A full table gives up half-open connections or idle UDP, whichever are more, then TIME_WAIT,
    /// and then refuses with RST.
    fn the_order_of_eviction(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 4);
        time_wait(&mut lab, 4000);
        udp(&mut lab, 6000);
        half_open(&mut lab, 4001);
        let mut kept = vec![lab.connect(4002, SERVER)];
        assert_eq!(lab.nat.flow_count(), 4);
        let udp_socket = lab.world().sent_datagrams()[0].token;
        let half = lab.world().stream_to(OTHER);

        kept.push(lab.connect(4003, SERVER));
        assert_ne!(lab.world().state(half), State::Open, "half-open goes first");
        assert_eq!(lab.world().state(udp_socket), State::Open);
        lab.take();

        kept.push(lab.connect(4004, SERVER));
        assert_eq!(lab.world().state(udp_socket), State::Closed, "then idle UDP");
        assert_eq!(lab.nat.flow_count(), 4);

        kept.push(lab.connect(4005, SERVER));
        assert_eq!(lab.nat.flow_count(), 4);
        assert_eq!(lab.counters().flows_evicted, 3, "then TIME_WAIT");

        let late = TcpGuest::new(4006, SERVER);
        let refusal = one(lab.exchange(&[late.syn(Some(1460)).frame()]));
        assert!(refusal.tcp().is_some_and(|s| s.has(RST | ACK)), "{refusal:?}");
        assert_eq!(lab.dropped(DropReason::FlowTableFull), 1);
        for guest in &mut kept {
            guest.send(&mut lab, b"alive");
            assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        }
    }

    /// gvisor-tap-vsock #676: ten unanswered connects blocked all new ones.
    fn unanswered_connects_block_nobody(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 10);
        lab.world().on_connect(OTHER, Connect::Pending);
        for port in 4000..4010 {
            lab.exchange(&[TcpGuest::new(port, OTHER).syn(Some(1460)).frame()]);
        }
        assert_eq!(lab.nat.flow_count(), 10);
        let mut guest = lab.connect(5000, SERVER);
        guest.send(&mut lab, b"alive");
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
    }

    /// smoltcp #961: a SYN flood starved everybody. Established flows go on, the oldest
    /// half-open one gives way.
    fn a_syn_flood_leaves_established_flows_alone(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 8);
        let mut guest = lab.connect(3999, SERVER);
        for port in 4000..5000 {
            lab.exchange(&[TcpGuest::new(port, OTHER).syn(Some(1460)).frame()]);
        }
        assert!(lab.nat.flow_count() <= 8);
        assert!(lab.world().open_sockets() <= 8);
        guest.send(&mut lab, b"alive");
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        assert!(is_half_open(&mut lab, 4999), "the newest stays");
        assert!(!is_half_open(&mut lab, 4000), "the oldest went");
    }

    /// A UDP flood pushes out the most idle UDP flows, never connections.
    fn a_udp_flood_leaves_connections_alone(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 8);
        let mut guest = lab.connect(3999, SERVER);
        for port in 6000..6500 {
            lab.exchange(&[build::udp(port, (*SERVER.ip(), 7), b"x")]);
        }
        assert_eq!(lab.world().sent_datagrams().len(), 500, "each datagram went out");
        assert!(lab.world().open_sockets() <= 8);
        guest.send(&mut lab, b"alive");
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
    }

    /// Nor does it push out connections that are still being made: a guest busy with UDP or pings
    /// can open new ones.
    fn a_udp_flood_leaves_new_connections_alone(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 8);
        lab.world().on_connect(SERVER, Connect::Pending);
        let guest = TcpGuest::new(4000, SERVER);
        lab.exchange(&[guest.syn(Some(1460)).frame()]);
        for port in 6000..6100 {
            lab.exchange(&[build::udp(port, (*OTHER.ip(), 7), b"x")]);
        }
        let stream = lab.world().stream_to(SERVER);
        lab.world().complete(stream, Ok(()));
        lab.settle();
        assert!(lab.take_one_tcp().is_syn_ack());
    }

    /// Permitted remotes are bounded, too: the latest ones may answer.
    fn permits_are_bounded(kind) {
        let mut lab = Lab::with(kind, |setup| setup.permits = 8);
        for last in 1..=200 {
            lab.exchange(&[build::udp(6000, (Ipv4Addr::new(203, 0, 113, last), 7), b"x")]);
        }
        let socket = lab.world().sent_datagrams()[0].token;
        let newest = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 200), 7);
        lab.world().deliver_from(socket, newest, b"y");
        lab.settle();
        assert_eq!(lab.take_one_udp().src, newest);
    }

    /// passt bug 94: after removals the table was probed the wrong way and found nothing. Flows
    /// come and go in every order, and each is found as long as it lives.
    fn flows_are_found_however_many_went_before(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 64);
        let mut live: Vec<TcpGuest> = Vec::new();
        let mut random = 12_345_u32;
        for round in 0..400 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if live.len() < 40 && (live.len() < 20 || random >> 31 == 0) {
                live.push(lab.connect(10_000 + round, SERVER));
            } else {
                let gone = live.swap_remove((random >> 8) as usize % live.len());
                gone.send_reset(&mut lab);
            }
            for guest in &mut live {
                guest.send(&mut lab, b"?");
                assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
            }
            assert_eq!(lab.nat.flow_count(), live.len());
        }
        assert_eq!(lab.world().open_sockets(), live.len());
    }

    /// moby #51248: everything hung after days of churn. Thousands of connections of every ending
    /// through a table of eight, and then there is nothing.
    fn churn_leaves_nothing_behind(kind) {
        let mut lab = Lab::with(kind, |setup| {
            setup.flows = 8;
            setup.rings = 8;
        });
        for round in 0..2000_u16 {
            let mut guest = lab.connect(10_000 + round, SERVER);
            let stream = lab.world().stream_to(SERVER);
            match round % 4 {
                0 => guest.send_reset(&mut lab),
                1 => lab.world().fails(stream, HostError::Reset),
                2 => {
                    guest.send_fin(&mut lab);
                    lab.world().ends(stream);
                    guest.drain(&mut lab);
                }
                _ => {
                    lab.world().ends(stream);
                    guest.drain(&mut lab);
                    guest.send_fin(&mut lab);
                }
            }
            lab.settle();
            lab.take();
        }
        lab.advance(seconds(60));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
        let counters = lab.counters();
        let ends = (counters.tcp_closed, counters.tcp_aborted);
        assert_eq!((counters.tcp_opened, ends), (2000, (1000, 1000)), "each ends once");
    }

    /// A thousand idle flows add no visit, and no host call, to a busy one.
    fn a_thousand_idle_flows_cost_a_busy_one_nothing(kind) {
        let transfer = |idle: u16| {
            let mut lab = Lab::with(kind, |setup| {
                setup.flows = 1100;
                setup.rings = 1100;
                setup.ring_len = 70_000;
            });
            for port in 0..idle {
                lab.connect(10_000 + port, SERVER);
            }
            let mut guest = lab.connect(4000, OTHER);
            lab.take();
            lab.log().take();
            let visits = lab.counters().flow_visits;
            let stream = lab.world().stream_to(OTHER);
            let data = pattern(300_000);
            lab.world().sends(stream, &data);
            assert_eq!(guest.receive(&mut lab, data.len()).len(), data.len());
            for piece in data.chunks(14_600) {
                guest.send(&mut lab, piece);
                lab.take();
            }
            (lab.counters().flow_visits - visits, lab.log().lines().len())
        };
        assert_eq!(transfer(1000), transfer(0));
    }

    /// One timer of one flow visits that flow and no other.
    fn a_timer_visits_its_own_flow_only(kind) {
        let mut lab = Lab::with(kind, |setup| {
            setup.flows = 600;
            setup.rings = 600;
            setup.ring_len = 70_000;
        });
        for port in 0..500 {
            lab.connect(10_000 + port, SERVER);
        }
        lab.connect(4000, OTHER);
        let stream = lab.world().stream_to(OTHER);
        lab.world().sends(stream, b"nobody listens");
        lab.settle();
        let visits = lab.counters().flow_visits;
        lab.advance(seconds(10));
        let timeouts = lab.counters().tcp_timeouts;
        let visited = lab.counters().flow_visits - visits;
        assert!(timeouts >= 3);
        assert!(visited <= timeouts * 3, "{visited} visits for {timeouts} timeouts");
    }
}

/// Everything handed over for N TCP flows, divided by N, is at most 256 bytes with IPv6-wide keys.
/// What TCP does without (permits), and what does not grow with the flows, is listed beside.
#[test]
fn a_flow_takes_at_most_256_bytes() {
    const FLOWS: usize = 1024;
    let flows = FLOWS * size_of::<Flow>();
    let buckets = FLOWS * size_of::<u32>();
    let per_flow = (flows + buckets) / FLOWS;
    println!(
        "flow {} + bucket {} = {per_flow} bytes a flow; \
         recovery {}, permit {}, fragment slot {}, lease {}, forward {}",
        size_of::<Flow>(),
        size_of::<u32>(),
        size_of::<Recovery>(),
        size_of::<Permit>(),
        size_of::<FragmentSlot>(),
        size_of::<Lease>(),
        size_of::<ForwardSlot>(),
    );
    assert!(per_flow <= 256, "{per_flow} bytes a flow");
    assert!(per_flow >= 40, "a flow holds two IPv6 addresses and ports: {per_flow} bytes");
}

#[test]
fn without_memory_for_a_flow_there_is_no_nat() {
    let refused = |change: fn(&mut Storage<'_>)| {
        let setup = Setup::default();
        let mut storage = setup.storage();
        change(&mut storage);
        Nat::new(setup.config, SECRET, storage).err()
    };
    assert_eq!(refused(|storage| storage.flows = vec![].into()), Some(ConfigError::Storage));
    assert_eq!(refused(|storage| storage.buckets = vec![].into()), Some(ConfigError::Storage));
    assert_eq!(refused(|storage| storage.pool = vec![].into()), None);
}
