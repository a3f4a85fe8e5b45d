//! The flow table: entries in lent memory, found by a keyed hash, evicted by class, woken by one
//! timer wheel, and queued when they have something to do.

use ipstack::Instant;
use managed::ManagedSlice;

use super::lists::{Class, Index, List, Pair, Select, at};
use super::wheel::{Place, Wheel};
use super::{Body, DatagramFlow, DatagramRole, Flow, FlowKey, TcpFlow};
use crate::host::{FlowId, Token};

/// Where an entry hangs: its hash chain, the list of its class, the timer wheel, a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    chain: Index,
    class_list: Pair,
    queue_list: Pair,
    pub(super) timer: Pair,
    pub(super) timer_at: Instant,
    pub(super) place: Option<Place>,
    class: Option<Class>,
    queue: Option<Queue>,
}

/// A queue of flows that have something to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queue {
    /// They are visited in turn.
    Ready,
    /// They wait until the hardware address of their guest is known.
    Waiting,
}

impl Queue {
    const COUNT: usize = 2;
}

impl Links {
    pub(super) const NONE: Self = Self {
        chain: 0,
        class_list: Pair::NONE,
        queue_list: Pair::NONE,
        timer: Pair::NONE,
        timer_at: Instant::ZERO,
        place: None,
        class: None,
        queue: None,
    };
}

const CLASS_LIST: Select = |flow| &mut flow.links.class_list;
const QUEUE_LIST: Select = |flow| &mut flow.links.queue_list;

/// All flows.
#[derive(Debug)]
pub(crate) struct FlowTable<'a> {
    flows: ManagedSlice<'a, Flow>,
    buckets: ManagedSlice<'a, u32>,
    secret: [u64; 2],
    /// Entries beyond this index were never used, and are not touched.
    high_water: u32,
    /// Free entries below it, linked by `chain`.
    free: Index,
    count: usize,
    classes: [List; Class::COUNT],
    wheel: Wheel,
    queues: [List; Queue::COUNT],
    /// Flows in [`Queue::Waiting`], and how many of them are to be visited again.
    waiting: usize,
    woken: usize,
}

impl<'a> FlowTable<'a> {
    pub(crate) fn new(
        flows: ManagedSlice<'a, Flow>,
        buckets: ManagedSlice<'a, u32>,
        secret: [u64; 2],
    ) -> Self {
        Self {
            flows,
            buckets,
            secret,
            high_water: 0,
            free: 0,
            count: 0,
            classes: [List::EMPTY; Class::COUNT],
            wheel: Wheel::new(),
            queues: [List::EMPTY; Queue::COUNT],
            waiting: 0,
            woken: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// The flow named `id`, unless it is over.
    pub(crate) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.flows
            .get_mut(id.slot as usize)
            .filter(|flow| flow.generation == id.generation && !matches!(flow.body, Body::Free))
    }

    pub(crate) fn get(&self, id: FlowId) -> Option<&Flow> {
        self.flows
            .get(id.slot as usize)
            .filter(|flow| flow.generation == id.generation && !matches!(flow.body, Body::Free))
    }

    /// The TCP flow named `id`, unless it is over.
    pub(crate) fn tcp(&mut self, id: FlowId) -> Option<&mut TcpFlow> {
        let Body::Tcp(tcp) = &mut self.get_mut(id)?.body else { return None };
        Some(tcp)
    }

    /// The UDP or ping flow named `id`, unless it is over.
    pub(crate) fn datagram(&mut self, id: FlowId) -> Option<&mut DatagramFlow> {
        let Body::Datagram(datagram) = &mut self.get_mut(id)?.body else { return None };
        Some(datagram)
    }

    /// The flow with this key.
    pub(crate) fn find(&self, key: &FlowKey) -> Option<FlowId> {
        let mut index = self.buckets.get(self.bucket(key)?).copied()?;
        // A chain is never longer than the table; the bound keeps a corrupt one from looping.
        for _ in 0..=self.high_water {
            let slot = index.checked_sub(1)?;
            let flow = self.flows.get(slot as usize)?;
            if flow.key == *key {
                return Some(FlowId { slot, generation: flow.generation });
            }
            index = flow.links.chain;
        }
        None
    }

    /// Makes an entry for `key`, which has none. `None` if the table is full.
    pub(crate) fn insert(&mut self, key: FlowKey, body: Body) -> Option<FlowId> {
        let bucket = self.bucket(&key)?;
        let slot = self.take_free()?;
        let head = self.buckets.get_mut(bucket)?;
        let flow = self.flows.get_mut(slot as usize)?;
        let generation = flow.generation.wrapping_add(1);
        let links = Links { chain: *head, ..Links::NONE };
        *flow = Flow { links, generation, key, body, token: None };
        *head = slot + 1;
        self.count += 1;
        Some(FlowId { slot, generation })
    }

    fn take_free(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.checked_sub(1) {
            self.free = self.flows.get(slot as usize)?.links.chain;
            return Some(slot);
        }
        let slot = self.high_water;
        self.flows.get(slot as usize)?;
        self.high_water = slot.checked_add(1)?;
        if let Some(flow) = self.flows.get_mut(slot as usize) {
            *flow = Flow::EMPTY;
        }
        Some(slot)
    }

    /// Removes a flow and returns its last state.
    pub(crate) fn remove(&mut self, id: FlowId) -> Option<Flow> {
        let last = *self.get(id)?;
        let index = id.slot + 1;
        self.classify(id, None);
        self.enqueue(id, None);
        self.wheel.remove(&mut self.flows, index);
        self.unchain(&last.key, index);
        let flow = self.flows.get_mut(id.slot as usize)?;
        flow.body = Body::Free;
        flow.token = None;
        flow.links.chain = self.free;
        self.free = index;
        self.count = self.count.saturating_sub(1);
        Some(last)
    }

    fn unchain(&mut self, key: &FlowKey, index: Index) {
        let Some(bucket) = self.bucket(key) else { return };
        let next = at(&mut self.flows, index).map_or(0, |flow| flow.links.chain);
        let Some(head) = self.buckets.get_mut(bucket) else { return };
        if *head == index {
            *head = next;
            return;
        }
        let mut before = *head;
        for _ in 0..self.high_water {
            let Some(flow) = at(&mut self.flows, before) else { return };
            if flow.links.chain == index {
                flow.links.chain = next;
                return;
            }
            before = flow.links.chain;
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a remainder of a usize")]
    fn bucket(&self, key: &FlowKey) -> Option<usize> {
        let count = self.buckets.len() as u64;
        key.hash(self.secret).checked_rem(count).map(|bucket| bucket as usize)
    }

    /// Puts a flow at the young end of a class, or in none.
    pub(crate) fn classify(&mut self, id: FlowId, class: Option<Class>) {
        let Some(flow) = self.get_mut(id) else { return };
        let old = core::mem::replace(&mut flow.links.class, class);
        let index = id.slot + 1;
        if let Some(list) = old.and_then(|class| self.classes.get_mut(class as usize)) {
            list.remove(&mut self.flows, CLASS_LIST, index);
        }
        if let Some(list) = class.and_then(|class| self.classes.get_mut(class as usize)) {
            list.push(&mut self.flows, CLASS_LIST, index);
        }
    }

    /// The name that the next flow will have, after an eviction if the table is full; `None` if
    /// there is no entry to be had.
    pub(crate) fn next_id(&self) -> Option<FlowId> {
        if !self.has_room() {
            let FlowId { slot, generation } = self.victim()?;
            return Some(FlowId { slot, generation: generation.wrapping_add(1) });
        }
        let slot = self.free.checked_sub(1).unwrap_or(self.high_water);
        let flow = self.flows.get(slot as usize)?;
        let used = if slot < self.high_water { flow.generation } else { 0 };
        Some(FlowId { slot, generation: used.wrapping_add(1) })
    }

    /// The first flow in slot `from` or after it that shares the socket `token` of a forward. It
    /// looks at all slots, for the rare end of a forward.
    pub(crate) fn next_forwarded_by(&self, token: Token, from: u32) -> Option<FlowId> {
        (from..self.high_water).zip(self.flows.iter().skip(from as usize)).find_map(
            |(slot, flow)| {
                let shares = flow.token == Some(token)
                    && matches!(&flow.body, Body::Datagram(d) if d.role == DatagramRole::Forwarded);
                shares.then_some(FlowId { slot, generation: flow.generation })
            },
        )
    }

    /// Whether there is an entry to be had without eviction.
    pub(crate) fn has_room(&self) -> bool {
        self.free != 0 || (self.high_water as usize) < self.flows.len()
    }

    /// The flow to be evicted next: of half-open connections and datagram flows whichever are
    /// more lose their oldest, so that a flood of one kind pushes out none of the other; then
    /// those in TIME-WAIT.
    pub(crate) fn victim(&self) -> Option<FlowId> {
        let count = |class| self.classes.get(class as usize).map_or(0, List::len);
        let most = if count(Class::Datagram) > count(Class::HalfOpen) {
            Class::Datagram
        } else {
            Class::HalfOpen
        };
        self.oldest(most).or_else(|| self.oldest(Class::TimeWait))
    }

    /// The oldest flow in TIME-WAIT, if those take up more than half of the table. They are kept
    /// out of the way of new flows, which would else have to push out half-open ones first.
    pub(crate) fn surplus_time_wait(&self) -> Option<FlowId> {
        let waiting = self.classes.get(Class::TimeWait as usize)?.len();
        if waiting > self.flows.len() / 2 { self.oldest(Class::TimeWait) } else { None }
    }

    fn oldest(&self, class: Class) -> Option<FlowId> {
        self.name(self.classes.get(class as usize)?.oldest())
    }

    /// Takes note of a flow's deadline. One that has moved to a later time is left where it hangs:
    /// it costs one early visit instead of a touch for each segment.
    pub(crate) fn reschedule(&mut self, id: FlowId) {
        let Some(flow) = self.get_mut(id) else { return };
        let Some(deadline) = flow.deadline() else { return };
        if flow.links.place.is_some() && flow.links.timer_at <= deadline {
            return;
        }
        let index = id.slot + 1;
        self.wheel.remove(&mut self.flows, index);
        if let Some(flow) = at(&mut self.flows, index) {
            flow.links.timer_at = deadline;
        }
        self.wheel.insert(&mut self.flows, index, deadline);
    }

    /// The next flow whose deadline has come.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<FlowId> {
        loop {
            let index = self.wheel.pop_due(&mut self.flows, now)?;
            let slot = index.checked_sub(1)?;
            let flow = self.flows.get(slot as usize)?;
            let id = FlowId { slot, generation: flow.generation };
            if flow.deadline().is_some_and(|deadline| deadline <= now) {
                return Some(id);
            }
            self.reschedule(id);
        }
    }

    /// When [`FlowTable::pop_due`] may next have something.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.wheel.next()
    }

    /// Queues a flow to be visited, once.
    pub(crate) fn make_ready(&mut self, id: FlowId) {
        self.enqueue(id, Some(Queue::Ready));
    }

    /// Keeps a flow that was to be visited until the hardware address of its guest is known.
    pub(crate) fn await_neighbour(&mut self, id: FlowId) {
        self.enqueue(id, Some(Queue::Waiting));
    }

    /// A hardware address has become known: flows that wait for one are visited again.
    pub(crate) const fn wake_waiting(&mut self) {
        self.woken = self.waiting;
    }

    /// Puts a flow at the end of a queue, unless it is in that one already, or in none.
    fn enqueue(&mut self, id: FlowId, queue: Option<Queue>) {
        let Some(flow) = self.get_mut(id).filter(|flow| flow.links.queue != queue) else { return };
        let old = core::mem::replace(&mut flow.links.queue, queue);
        let index = id.slot + 1;
        if old == Some(Queue::Waiting) {
            self.waiting = self.waiting.saturating_sub(1);
        }
        if let Some(list) = old.and_then(|queue| self.queues.get_mut(queue as usize)) {
            list.remove(&mut self.flows, QUEUE_LIST, index);
        }
        if queue == Some(Queue::Waiting) {
            self.waiting = self.waiting.saturating_add(1);
        }
        if let Some(list) = queue.and_then(|queue| self.queues.get_mut(queue as usize)) {
            list.push(&mut self.flows, QUEUE_LIST, index);
        }
    }

    /// The flow to be visited next, which is then in no queue: those that were woken, then the one
    /// that has been ready for longest.
    pub(crate) fn pop_ready(&mut self) -> Option<FlowId> {
        let woken = self.woken.checked_sub(1).and_then(|rest| {
            self.woken = rest;
            self.first_in(Queue::Waiting)
        });
        let id = woken.or_else(|| self.first_in(Queue::Ready))?;
        self.enqueue(id, None);
        Some(id)
    }

    fn first_in(&self, queue: Queue) -> Option<FlowId> {
        self.name(self.queues.get(queue as usize)?.oldest())
    }

    /// Whether a flow is to be visited.
    pub(crate) fn has_ready(&self) -> bool {
        self.first_in(Queue::Ready).is_some() || (self.woken > 0 && self.waiting > 0)
    }

    /// The name of the entry with this index.
    fn name(&self, index: Index) -> Option<FlowId> {
        let slot = index.checked_sub(1)?;
        let generation = self.flows.get(slot as usize)?.generation;
        Some(FlowId { slot, generation })
    }
}

#[cfg(test)]
mod tests;
