use core::net::Ipv4Addr;
use std::collections::{HashMap, VecDeque};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::flow::{DatagramFlow, Endpoint, FlowKind};

/// Entries, and keys that compete for them and for a few hash chains.
const ENTRIES: usize = 6;
const KEYS: u16 = 10;
const BUCKETS: usize = 3;

fn key(number: u16) -> FlowKey {
    FlowKey {
        guest: Endpoint::v4(Ipv4Addr::new(10, 0, 2, 15), number),
        remote: Endpoint::v4(Ipv4Addr::new(192, 0, 2, 1), 80),
        kind: FlowKind::Udp,
    }
}

fn body(expires: u64) -> Body {
    let mut flow = DatagramFlow::new(DatagramRole::Outgoing);
    flow.expires = Instant::from_micros(expires);
    Body::Datagram(flow)
}

/// Memory that was used before: what it contains does not matter until an entry is handed out.
struct Memory {
    flows: Vec<Flow>,
    buckets: Vec<u32>,
}

impl Memory {
    fn new(entries: usize) -> Self {
        let mut stale = Flow::EMPTY;
        stale.body = body(7);
        stale.links.queue = Some(Queue::Ready);
        stale.links.chain = 1;
        Self { flows: vec![stale; entries], buckets: vec![0; BUCKETS] }
    }

    fn table(&mut self) -> FlowTable<'_> {
        FlowTable::new((&mut self.flows[..]).into(), (&mut self.buckets[..]).into(), [1, 2])
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16, u64),
    Remove(u16),
    Classify(u16, Option<Class>),
    Ready(u16),
    Await(u16),
    Wake,
    Pop,
    Postpone(u16, u64),
    Advance(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let class = prop::sample::select(vec![
        None,
        Some(Class::HalfOpen),
        Some(Class::Datagram),
        Some(Class::TimeWait),
    ]);
    prop_oneof![
        4 => (0..KEYS, 0u64..100_000).prop_map(|(key, delay)| Step::Insert(key, delay)),
        2 => (0..KEYS).prop_map(Step::Remove),
        3 => (0..KEYS, class).prop_map(|(key, class)| Step::Classify(key, class)),
        3 => (0..KEYS).prop_map(Step::Ready),
        2 => (0..KEYS).prop_map(Step::Await),
        1 => Just(Step::Wake),
        3 => Just(Step::Pop),
        2 => (0..KEYS, 0u64..100_000).prop_map(|(key, delay)| Step::Postpone(key, delay)),
        2 => (0u64..60_000).prop_map(Step::Advance),
    ]
}

/// What the table should hold.
struct Model<'m> {
    table: FlowTable<'m>,
    ids: HashMap<u16, FlowId>,
    due: HashMap<u16, u64>,
    classes: [VecDeque<u16>; Class::COUNT],
    ready: VecDeque<u16>,
    waiting: VecDeque<u16>,
    woken: usize,
    now: u64,
    dead: Vec<FlowId>,
}

impl<'m> Model<'m> {
    fn new(memory: &'m mut Memory) -> Self {
        Self {
            table: memory.table(),
            ids: HashMap::new(),
            due: HashMap::new(),
            classes: Default::default(),
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            woken: 0,
            now: 0,
            dead: Vec::new(),
        }
    }

    fn id(&self, key: u16) -> FlowId {
        self.ids.get(&key).copied().unwrap_or(FlowId { slot: 0, generation: u32::MAX })
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Insert(number, delay) => self.insert(number, delay),
            Step::Remove(number) => {
                assert_eq!(
                    self.table.remove(self.id(number)).is_some(),
                    self.ids.contains_key(&number)
                );
                self.forget(number);
            }
            Step::Classify(number, class) => {
                self.table.classify(self.id(number), class);
                if self.ids.contains_key(&number) {
                    self.classes.iter_mut().for_each(|list| list.retain(|n| *n != number));
                    if let Some(class) = class {
                        self.classes[class as usize].push_back(number);
                    }
                }
            }
            Step::Ready(number) => {
                self.table.make_ready(self.id(number));
                if self.ids.contains_key(&number) && !self.ready.contains(&number) {
                    self.waiting.retain(|n| *n != number);
                    self.ready.push_back(number);
                }
            }
            Step::Await(number) => {
                self.table.await_neighbour(self.id(number));
                if self.ids.contains_key(&number) && !self.waiting.contains(&number) {
                    self.ready.retain(|n| *n != number);
                    self.waiting.push_back(number);
                }
            }
            Step::Wake => {
                self.table.wake_waiting();
                self.woken = self.waiting.len();
            }
            Step::Pop => self.pop(),
            Step::Postpone(number, delay) => self.postpone(number, delay),
            Step::Advance(by) => self.advance(by),
        }
    }

    fn insert(&mut self, number: u16, delay: u64) {
        if self.ids.contains_key(&number) {
            return;
        }
        let promised = self.table.next_id();
        if !self.table.has_room() {
            assert_eq!(self.ids.len(), ENTRIES);
            assert_eq!(self.table.insert(key(number), body(0)), None);
            let Some(victim) = self.table.victim() else {
                assert_eq!(promised, None);
                return assert!(self.classes.iter().all(VecDeque::is_empty));
            };
            let [half_open, datagram, time_wait] = &self.classes;
            let most = if datagram.len() > half_open.len() { datagram } else { half_open };
            let oldest = *most.front().or_else(|| time_wait.front()).unwrap();
            assert_eq!(victim, self.id(oldest));
            self.table.remove(victim).unwrap();
            self.forget(oldest);
        }
        let due = self.now + delay;
        let id = self.table.insert(key(number), body(due)).unwrap();
        assert_eq!(Some(id), promised);
        assert!(!self.dead.contains(&id), "a name came back");
        self.table.reschedule(id);
        self.ids.insert(number, id);
        self.due.insert(number, due);
    }

    fn forget(&mut self, number: u16) {
        self.dead.extend(self.ids.remove(&number));
        self.due.remove(&number);
        self.ready.retain(|n| *n != number);
        self.waiting.retain(|n| *n != number);
        self.classes.iter_mut().for_each(|list| list.retain(|n| *n != number));
    }

    fn pop(&mut self) {
        let expected = if self.woken > 0 {
            self.woken -= 1;
            self.waiting.pop_front().or_else(|| self.ready.pop_front())
        } else {
            self.ready.pop_front()
        };
        assert_eq!(self.table.pop_ready(), expected.map(|number| self.id(number)));
    }

    fn postpone(&mut self, number: u16, delay: u64) {
        let Some(flow) = self.table.get_mut(self.id(number)) else { return };
        let due = self.now + delay;
        flow.body = body(due);
        self.table.reschedule(self.id(number));
        self.due.insert(number, due);
    }

    /// Every flow whose time has come is named once, and ends.
    fn advance(&mut self, by: u64) {
        self.now += by;
        while let Some(id) = self.table.pop_due(Instant::from_micros(self.now)) {
            let number = *self.ids.iter().find(|(_, known)| **known == id).unwrap().0;
            assert!(self.due[&number] <= self.now);
            self.table.remove(id).unwrap();
            self.forget(number);
        }
        assert!(self.due.values().all(|due| due + 1024 > self.now), "late");
        assert_eq!(self.table.next_deadline().is_some(), !self.due.is_empty());
    }

    fn check(&self) {
        assert_eq!(self.table.len(), self.ids.len());
        for number in 0..KEYS {
            assert_eq!(self.table.find(&key(number)), self.ids.get(&number).copied());
        }
        for id in &self.dead {
            assert!(self.table.get(*id).is_none());
        }
        let ready = !self.ready.is_empty() || (self.woken > 0 && !self.waiting.is_empty());
        assert_eq!(self.table.has_ready(), ready);
    }
}

proptest! {
    // Deletion from a hash chain must not hide the entries behind it (passt bug 94).
    #[test]
    fn it_is_a_map_with_classes_queues_and_timers(steps in prop::collection::vec(step(), 1..120)) {
        let mut memory = Memory::new(ENTRIES);
        let mut model = Model::new(&mut memory);
        for step in &steps {
            model.run(step);
            model.check();
        }
    }
}

#[test]
fn half_open_goes_before_datagram_before_time_wait_and_never_the_established() {
    let mut memory = Memory::new(4);
    let mut table = memory.table();
    let classes = [Some(Class::TimeWait), Some(Class::Datagram), None, Some(Class::HalfOpen)];
    let ids: Vec<FlowId> =
        (0..4).map(|number| table.insert(key(number), body(0)).unwrap()).collect();
    for (id, class) in ids.iter().zip(classes) {
        table.classify(*id, class);
    }
    for expected in [ids[3], ids[1], ids[0]] {
        assert_eq!(table.victim(), Some(expected));
        table.remove(expected);
    }
    assert_eq!(table.victim(), None);
    assert!(table.get(ids[2]).is_some());
}

#[test]
fn the_kind_of_which_there_are_more_is_evicted() {
    let mut memory = Memory::new(5);
    let mut table = memory.table();
    let classes = [Class::HalfOpen, Class::Datagram, Class::Datagram, Class::Datagram];
    let ids: Vec<FlowId> =
        (0..4).map(|number| table.insert(key(number), body(0)).unwrap()).collect();
    for (id, class) in ids.iter().zip(classes) {
        table.classify(*id, Some(class));
    }
    for expected in [ids[1], ids[2], ids[0], ids[3]] {
        assert_eq!(table.victim(), Some(expected));
        table.remove(expected);
    }
}

#[test]
fn a_slot_that_left_a_queue_by_removal_is_queued_anew() {
    let mut memory = Memory::new(1);
    let mut table = memory.table();
    let old = table.insert(key(0), body(0)).unwrap();
    table.await_neighbour(old);
    table.remove(old);
    let new = table.insert(key(1), body(0)).unwrap();
    assert!(!table.has_ready());
    table.make_ready(new);
    assert_eq!(table.pop_ready(), Some(new));
    assert_eq!(table.pop_ready(), None);
}

#[test]
fn only_flows_that_share_the_socket_of_a_forward_are_named() {
    let mut memory = Memory::new(4);
    let mut table = memory.table();
    for (number, role) in
        [(0, DatagramRole::Outgoing), (1, DatagramRole::Forwarded), (2, DatagramRole::Forwarded)]
    {
        let id = table.insert(key(number), Body::Datagram(DatagramFlow::new(role))).unwrap();
        let token = Token(if number == 2 { 9 } else { 8 });
        table.get_mut(id).unwrap().token = Some(token);
    }
    let found = table.next_forwarded_by(Token(8), 0).unwrap();
    assert_eq!(found, table.find(&key(1)).unwrap());
    assert_eq!(table.next_forwarded_by(Token(8), found.slot + 1), None);
}
