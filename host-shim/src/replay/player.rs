//! Feeding a recording to a fresh NAT.

use core::cell::RefCell;
use std::io::BufRead;

use ipstack::Instant;
use slirp_nat::host::{FlowId, ForwardId, HostEvent};
use slirp_nat::link::{Frame, TxMeta};
use slirp_nat::{Forward, Nat, Protocol};

use super::actors::{ScriptHost, ScriptLink};
use super::error::{Fault, ReplayError};
use super::format::{Call, Input, Line};
use super::script::{Report, Script};

/// A frame of a replay.
#[derive(Clone, Copy, Debug)]
pub enum Traffic<'a> {
    /// One that the NAT was given.
    FromGuest(&'a [u8]),
    /// One that the NAT has sent, and how it is to be finished.
    ForGuest(&'a [u8], &'a TxMeta),
}

/// Replays a recording and checks that the NAT does the same again: the same calls on host and
/// link, the same frames, the same deadlines. `watch` is shown every frame with the recorded time,
/// the first that differs included.
///
/// Returns how far it came and, if that is not the end, why: the first thing that differs, or what
/// is wrong with the recording.
pub fn replay(
    reader: impl BufRead,
    watch: impl FnMut(Instant, Traffic<'_>),
) -> (Report, Result<(), ReplayError>) {
    let script = RefCell::new(Script::new(reader));
    let result = play(&script, watch);
    (script.into_inner().report, result)
}

fn play<R: BufRead>(
    script: &RefCell<Script<R>>,
    mut watch: impl FnMut(Instant, Traffic<'_>),
) -> Result<(), ReplayError> {
    let broken = |fault| Err(script.borrow().broken(fault));
    let first = script.borrow_mut().next_line();
    let header = match first {
        Ok(Some(Line::Header(header))) if header.is_known() => header,
        Err(error @ ReplayError::Io(_)) => return Err(error),
        _ => return broken(Fault::Header),
    };
    let Some((config, secret, storage)) = header.parts() else {
        return broken(Fault::Configuration);
    };
    let Ok(mut nat) = Nat::new(config, secret, storage) else {
        return broken(Fault::Configuration);
    };
    loop {
        let line = script.borrow_mut().next_line()?;
        match line {
            Some(Line::Input(input)) => step(&mut nat, script, input, &mut watch)?,
            Some(Line::End {}) => break,
            Some(_) => return broken(Fault::Misplaced),
            None => return broken(Fault::Cut),
        }
    }
    let behind = script.borrow_mut().next_line()?;
    behind.map_or(Ok(()), |_| broken(Fault::Misplaced))
}

/// One call on the NAT.
fn step<R: BufRead>(
    nat: &mut Nat<'static>,
    script: &RefCell<Script<R>>,
    input: Input,
    watch: &mut impl FnMut(Instant, Traffic<'_>),
) -> Result<(), ReplayError> {
    let now = Instant::from_micros(input.at);
    script.borrow_mut().begin(&input);
    if let Call::Receive(frames) = &input.call {
        frames.iter().for_each(|frame| watch(now, Traffic::FromGuest(&frame.bytes)));
    }
    let mut host = ScriptHost { script };
    let mut link = ScriptLink { script, watch, now, buffer: Vec::new() };
    match input.call {
        Call::Receive(frames) => {
            let frames: Vec<Frame<'_>> = frames.iter().map(|frame| frame.frame()).collect();
            nat.receive(now, &frames, &mut host, &mut link);
        }
        Call::FlowEvent { slot, generation, ready } => {
            let event = HostEvent::Flow(FlowId { slot, generation }, ready.ready());
            nat.on_host_event(now, event, &mut host, &mut link);
        }
        Call::ForwardEvent { forward, ready } => {
            let event = HostEvent::Forward(ForwardId(forward), ready.ready());
            nat.on_host_event(now, event, &mut host, &mut link);
        }
        Call::LinkReady => nat.on_link_ready(now, &mut host, &mut link),
        Call::Timer => nat.on_timer(now, &mut host, &mut link),
        Call::AddForward { udp, host: address, guest } => {
            let protocol = if udp { Protocol::Udp } else { Protocol::Tcp };
            let rule = Forward { protocol, host: address, guest };
            // Whether it succeeds follows from the host's answers, which are compared.
            let _ = nat.add_forward(rule, &mut host);
        }
        Call::RemoveForward { forward } => {
            nat.remove_forward(ForwardId(forward), &mut host);
        }
        Call::SetResolvers(resolvers) => nat.set_resolvers(&resolvers),
    }
    script.borrow_mut().ends_call(nat.poll_at().map(|deadline| deadline.at.micros()));
    script.borrow_mut().failure.take().map_or(Ok(()), Err)
}
