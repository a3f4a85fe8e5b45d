//! Ending TCP connections in good order, each direction by itself.

use slirp_nat::host::Token;

use crate::prelude::*;

/// A guest whose connection both sides have ended, the server first, and the stream to that server.
fn in_time_wait(lab: &mut Lab) -> (TcpGuest, Token) {
    let mut guest = lab.connect(4000, SERVER);
    let stream = lab.world().stream_to(SERVER);
    lab.world().ends(stream);
    guest.drain(lab);
    guest.send_fin(lab);
    lab.settle();
    lab.take();
    (guest, stream)
}

on_both_hosts! {
    /// With the guest's end the host's direction is shut. Its room is then of no interest, however
    /// little there is.
    fn no_room_is_waited_for_behind_the_guests_end(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().set_room(stream, 10);
        guest.snd_nxt += 10;
        lab.input(&guest.segment().seq(guest.snd_nxt - 10).flags(FIN | ACK).data(&[7; 10]).frame());
        assert!(lab.world().is_write_shut(stream));
        assert!(!lab.world().is_write_armed(stream));
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt + 1);
    }

    /// The guest ends first, then the server; each sees the other's bytes and end.
    /// RFC 9293 3.10.7.4, fifth check.
    fn the_guest_closes_first(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        guest.send(&mut lab, b"request");
        guest.send_fin(&mut lab);
        assert_eq!(lab.take_tcp().last().expect("an ACK").ack, guest.snd_nxt);
        assert_eq!(lab.world().sent(stream), b"request");
        assert!(lab.world().is_write_shut(stream));
        lab.world().sends(stream, b"answer");
        lab.world().ends(stream);
        assert_eq!(guest.drain(&mut lab), (b"answer".to_vec(), true));
        assert_eq!(lab.world().state(stream), State::Closed);
        lab.advance(seconds(300));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.counters().tcp_closed, 1);
        assert_eq!(lab.counters().tcp_resets_out, 0);
    }

    /// The server ends first and goes on reading (libslirp #12, lima #5264: half-close was answered
    /// by RST). RFC 9293 3.10.7.4, eighth check.
    fn the_server_closes_first_and_goes_on_reading(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, b"banner");
        lab.world().ends(stream);
        assert_eq!(guest.drain(&mut lab), (b"banner".to_vec(), true));
        for _ in 0..3 {
            guest.send(&mut lab, &pattern(5000));
            assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        }
        assert_eq!(lab.world().sent(stream).len(), 15_000);
        assert!(!lab.world().is_write_shut(stream));
        guest.send_fin(&mut lab);
        lab.settle();
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        assert_ne!(lab.world().state(stream), State::Reset);
        lab.advance(seconds(300));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().state(stream), State::Closed);
    }

    /// gvisor-tap-vsock #387: half-close was not relayed. The guest has ended, and a long download
    /// still comes. RFC 9293 3.10.7.4, fifth check.
    fn a_half_closed_guest_still_downloads(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        guest.send_fin(&mut lab);
        lab.settle();
        lab.take();
        assert!(lab.world().is_write_shut(stream));
        let data = pattern(300_000);
        lab.world().sends(stream, &data);
        assert_eq!(guest.receive(&mut lab, data.len()), data);
        lab.world().ends(stream);
        assert_eq!(guest.drain(&mut lab), (vec![], true));
    }

    /// passt 8d2f8c4, ipstack #89, netstack-smoltcp PR 17: FIN overtook data. It comes after the
    /// last byte only, however small the window.
    fn fin_comes_after_the_last_byte(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        guest.window = 3000;
        guest.open(&mut lab, Some(1460));
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(20_000);
        lab.world().sends(stream, &data);
        lab.world().ends(stream);
        lab.settle();
        let first = lab.take_tcp();
        assert!(first.iter().all(|s| !s.has(FIN)), "{first:?}");
        let (head, _) = guest.absorb(&first);
        guest.send_ack(&mut lab);
        let (tail, fin) = guest.drain(&mut lab);
        assert!(fin);
        assert_eq!([head, tail].concat(), data);
    }

    /// The end that is known with the last bytes rides on the last segment or follows it at once.
    fn fin_needs_no_timer(kind) {
        let mut lab = Lab::new(kind);
        lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(100));
        lab.world().ends(stream);
        lab.settle();
        assert!(lab.take_tcp().last().expect("segments").has(FIN));
    }

    /// passt bug 195: a lost FIN was never sent again. FIN takes a sequence number and is
    /// retransmitted like a byte.
    fn a_lost_fin_is_sent_again(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().ends(stream);
        lab.settle();
        let fin = lab.take_one_tcp();
        assert!(fin.has(FIN));
        lab.advance(seconds(5));
        let again = lab.take_tcp();
        assert!(!again.is_empty(), "FIN is not repeated");
        assert!(again.iter().all(|s| s.has(FIN) && s.seq == fin.seq), "{again:?}");
        guest.rcv_nxt = fin.seq.wrapping_add(1);
        guest.send_ack(&mut lab);
        lab.advance(seconds(10));
        lab.expect_nothing();
    }

    /// FIN lost together with the data before it: both come again.
    fn a_fin_lost_with_its_data_is_sent_again(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(4000);
        lab.world().sends(stream, &data);
        lab.world().ends(stream);
        lab.settle();
        lab.take();
        lab.advance(seconds(2));
        let (mut all, mut fin) = (Vec::new(), false);
        for _ in 0..10 {
            let mut segments = lab.take_tcp();
            segments.dedup_by_key(|s| s.seq);
            segments.retain(|s| s.seq == guest.rcv_nxt);
            let (bytes, ended) = guest.absorb(&segments);
            all.extend(bytes);
            fin |= ended;
            guest.send_ack(&mut lab);
            lab.advance(seconds(1));
        }
        assert_eq!((all, fin), (data, true));
    }

    /// passt bug 125: repeated ACKs while only FIN is outstanding caused a storm.
    fn duplicate_acks_of_a_lone_fin_send_nothing(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().ends(stream);
        lab.settle();
        lab.take();
        for _ in 0..10 {
            guest.send_ack(&mut lab);
            lab.settle();
        }
        assert_eq!(lab.counters().tcp_fast_retransmits, 0);
        lab.expect_nothing();
    }

    /// passt bug 114: consumed bytes were counted after the mark had moved, and data was resent
    /// for ever after FIN.
    fn nothing_is_sent_again_after_a_clean_end(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(10_000));
        lab.world().ends(stream);
        let (bytes, fin) = guest.drain(&mut lab);
        assert_eq!((bytes.len(), fin), (10_000, true));
        assert_eq!(lab.world().unconsumed(stream), 0);
        lab.advance(seconds(120));
        lab.expect_nothing();
        assert_eq!(lab.counters().tcp_bytes_retransmitted, 0);
    }

    /// passt 8efa80b: data behind the guest's FIN was forwarded. RFC 9293 3.10.7.4, seventh check.
    fn data_behind_the_guests_fin_is_ignored(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        guest.send(&mut lab, b"all");
        guest.send_fin(&mut lab);
        guest.send(&mut lab, b"too late");
        lab.settle();
        assert_eq!(lab.world().sent(stream), b"all");
        assert!(lab.world().is_write_shut(stream));
    }

    /// A FIN that comes with data, and one that comes before a gap is filled.
    fn a_fin_waits_for_the_bytes_before_it(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let frames = guest.segments(&pattern(2920));
        lab.input(&frames[0]);
        let fin = guest.segment().flags(FIN | ACK).frame();
        lab.input(&fin);
        lab.settle();
        assert!(!lab.world().is_write_shut(stream), "bytes are missing");
        lab.input(&frames[1]);
        lab.input(&fin);
        guest.snd_nxt += 1;
        lab.settle();
        assert_eq!(lab.world().sent(stream), pattern(2920));
        assert!(lab.world().is_write_shut(stream));
        assert_eq!(lab.take_tcp().last().expect("an ACK").ack, guest.snd_nxt);
    }

    /// The end of the guest's stream reaches the host after parked bytes, not before.
    fn the_guests_end_waits_for_parked_bytes(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().take_short(stream, &[3]);
        guest.send(&mut lab, b"abcdefghij");
        guest.send_fin(&mut lab);
        assert!(!lab.world().is_write_shut(stream), "bytes are parked");
        lab.world().drain(stream);
        lab.settle();
        assert_eq!(lab.world().sent(stream), b"abcdefghij");
        assert!(lab.world().is_write_shut(stream));
    }

    /// Both ends at once (RFC 9293 3.6, figure 13). RFC 9293 3.10.7.4, fifth check.
    fn both_close_at_once(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().ends(stream);
        lab.settle();
        let fin = lab.take_one_tcp();
        assert!(fin.has(FIN));
        guest.send_fin(&mut lab);
        assert_eq!(lab.take_tcp().last().expect("an ACK").ack, guest.snd_nxt);
        guest.rcv_nxt = fin.seq.wrapping_add(1);
        guest.send_ack(&mut lab);
        lab.settle();
        lab.expect_nothing();
        assert_eq!(lab.world().state(stream), State::Closed);
        lab.advance(seconds(300));
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// A repeated FIN is acknowledged again, in TIME_WAIT too. RFC 9293 3.10.7.4, eighth check.
    fn a_repeated_fin_is_acknowledged_again(kind) {
        let mut lab = Lab::new(kind);
        let (guest, _) = in_time_wait(&mut lab);
        let fin = guest.segment().flags(FIN | ACK).seq(guest.snd_nxt.wrapping_sub(1)).frame();
        for _ in 0..3 {
            lab.input(&fin);
            let ack = lab.take_one_tcp();
            assert!(ack.is_pure_ack(), "{ack:?}");
            assert_eq!(ack.ack, guest.snd_nxt);
        }
    }

    /// RFC 9293 3.10.7.4, RFC 6191: TIME_WAIT is reused by a new SYN.
    fn time_wait_is_reused_by_a_new_syn(kind) {
        let mut lab = Lab::new(kind);
        let (guest, stream) = in_time_wait(&mut lab);
        let mut again = TcpGuest::new(4000, SERVER);
        again.snd_nxt = guest.snd_nxt.wrapping_add(100_000);
        again.open(&mut lab, Some(1460));
        again.send(&mut lab, b"second life");
        let second = lab.world().stream_to(SERVER);
        assert_ne!(second, stream);
        assert_eq!(lab.world().sent(second), b"second life");
    }

    /// The guest ends TIME-WAIT by a reset and asks anew, all while nothing can be sent to it.
    fn a_reset_ends_time_wait_while_the_link_has_no_room(kind) {
        let mut lab = Lab::new(kind);
        let (guest, _) = in_time_wait(&mut lab);
        lab.link.set_frames(0);
        lab.input(&build::ping(GATEWAY, 1, 1, b"x"));
        guest.send_reset(&mut lab);
        assert_eq!(lab.nat.flow_count(), 0);
        lab.input(&TcpGuest::new(4000, SERVER).syn(Some(1460)).frame());
        assert_eq!(lab.world().connects(), 2);
    }

    /// Bytes that the guest was promised outlive its connection, but not for ever: a server gets ten
    /// minutes to take more of them, and then ten more.
    fn a_server_that_never_reads_does_not_hold_what_has_ended_for_ever(kind) {
        let mut lab = Lab::new(kind);
        let (stream, _) = ended_before_the_server_has_read(&mut lab);
        lab.advance(seconds(10 * 60));
        lab.world().drain(stream);
        lab.settle();
        assert_eq!(lab.world().sent(stream), &[7; 700]);
        lab.advance(seconds(10 * 60 - 10));
        assert_eq!(lab.nat.flow_count(), 1);
        lab.advance(seconds(20));
        assert_eq!((lab.nat.flow_count(), lab.nat.pool_blocks_in_use()), (0, 0));
        assert_eq!(lab.world().state(stream), State::Reset);
        assert_eq!(lab.take().len(), 0, "the guest has ended");
    }

    /// Nor does another connection of the same ports end them.
    fn a_new_syn_waits_for_what_the_server_has_to_take_before(kind) {
        let mut lab = Lab::new(kind);
        let (stream, guest) = ended_before_the_server_has_read(&mut lab);
        let mut again = TcpGuest::new(4000, SERVER);
        again.snd_nxt = guest.snd_nxt.wrapping_add(100_000);
        for _ in 0..2 {
            lab.input(&again.syn(Some(1460)).frame());
            lab.settle();
            assert_eq!(lab.take().len(), 0, "it may ask again");
            lab.advance(seconds(20));
        }
        assert_eq!(lab.dropped(DropReason::HostBusy), 2);
        for _ in 0..2 {
            lab.world().drain(stream);
            lab.settle();
        }
        assert_eq!(lab.world().sent(stream), &[7; 1200]);
        assert_eq!(lab.nat.flow_count(), 0);
        again.open(&mut lab, Some(1460));
    }

    /// slirp4netns #350, libslirp #86: connections hung in FIN_WAIT_2 and leaked descriptors. The
    /// server has closed for good, and the guest never sends its FIN.
    fn a_guest_that_never_closes_does_not_hold_the_connection_for_ever(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().ends(stream);
        guest.drain(&mut lab);
        lab.advance(seconds(599));
        assert_eq!((lab.nat.flow_count(), lab.world().open_sockets()), (1, 1));
        lab.advance(seconds(2));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
    }

    /// passt bug 179, moby #51248: the guest vanished with our FIN unanswered.
    fn a_vanished_guest_does_not_hold_the_connection_for_ever(kind) {
        let mut lab = Lab::new(kind);
        lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, b"anybody?");
        lab.world().ends(stream);
        lab.advance(seconds(4 * 3600));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
    }

    /// LAST_ACK ends, too, if the last ACK never comes.
    fn a_lost_last_ack_does_not_hold_the_connection_for_ever(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        guest.send_fin(&mut lab);
        lab.world().ends(stream);
        lab.settle();
        lab.take();
        lab.advance(seconds(4 * 3600));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
    }
}

/// Both ends have ended, and the server has taken 200 of the guest's 1,200 bytes, and takes 500
/// next.
fn ended_before_the_server_has_read(lab: &mut Lab) -> (Token, TcpGuest) {
    let mut guest = lab.connect(4000, SERVER);
    let stream = lab.world().stream_to(SERVER);
    lab.world().take_short(stream, &[200, 500]);
    guest.send(lab, &[7; 1200]);
    guest.send_fin(lab);
    lab.world().ends(stream);
    guest.drain(lab);
    assert!(!lab.world().is_write_shut(stream));
    (stream, guest)
}
