//! Allocations of an order in the shard: none except for its rows, which come in blocks. There are two exceptions: an
//! id of more than 38 bytes, and the text of a quantity finer than 4 decimals.

use super::world::World;
use crate::command::{Answer, Command, Envelope};
use crate::id::{OrderId, UserId};
use crate::notice::Notice;
use crate::shard::{Outbox, Room};
use crate::time::{MINUTE, Timestamp};

/// Drops all output but the id of the last order.
struct Sink(Option<OrderId>);

impl Outbox<u64> for Sink {
    fn room(&self) -> Room {
        Room::Ample
    }
    fn record(&mut self, _: UserId, _: Timestamp, _: &[u8]) {}
    fn notice(&mut self, _: Notice) {}
    fn answer(&mut self, _: u64, answer: Answer) {
        match answer {
            Answer::Order(view) | Answer::Killed { order: view, .. } => self.0 = Some(view.order.id),
            other => panic!("every command has an answer with an order: {other:?}"),
        }
    }
}

/// Commands of one kind, and the count of their allocations.
#[derive(Debug, Default)]
struct Count {
    commands: u64,
    allocations: u64,
}

impl Count {
    fn add(&mut self, allocations: u64) {
        self.commands += 1;
        self.allocations += allocations;
    }
}

/// An order in the scenario language.
struct Kind {
    line: &'static str,
    is_cancelled: bool,
    /// Count of lists that it appends to: index of object numbers (its blocks have 64 numbers, of some five orders),
    /// order, fill, position, remembered request, the buckets of its id's hash; and two for rare fields (the client's id, or the fillable shares of a killed order), whose block takes two
    /// allocations.
    lists: u64,
    /// Allocations outside of its rows: an id of more than 38 bytes, the text of a finer quantity.
    own: u64,
}

/// For each list an odd count of kinds appends to it, nine orders, five requests and so on: otherwise all blocks would
/// start with the same kind.
const KINDS: [Kind; 9] = [
    Kind { line: "buy Y 5 limit 0.30 pro", is_cancelled: true, lists: 2, own: 0 },
    Kind { line: "buy Y 5 limit 0.30 pro id=", is_cancelled: true, lists: 6, own: 0 },
    Kind { line: "buy Y 5 limit 0.30 pro implicit id=s", is_cancelled: true, lists: 6, own: 0 },
    Kind { line: "buy Y 5 limit 0.30 pro id=longer-", is_cancelled: true, lists: 6, own: 1 },
    Kind { line: "buy Y 5 limit 0.30 pro rounded=5.00001 id=r", is_cancelled: true, lists: 6, own: 1 },
    // Every other fill is a sale's, so that every block of fills starts with one of these.
    Kind { line: "buy Y 15 limit 0.60 pro", is_cancelled: false, lists: 5, own: 0 },
    Kind { line: "sell Y 15 limit 0.30 pro", is_cancelled: false, lists: 2, own: 0 },
    Kind { line: "buy Y 5 limit 0.30 fok pro id=f", is_cancelled: false, lists: 6, own: 0 },
    Kind { line: "buy Y 5000 limit 0.60 fok pro", is_cancelled: false, lists: 4, own: 0 },
];
/// Rows of a block, roughly; a growing list of blocks or numbers is rarer.
const ROWS_PER_BLOCK: u64 = 16;
/// Orders of one kind that may grow another list: doubling is rare.
const GROWN_MAX: u64 = 16;

#[test]
fn an_order_allocates_only_its_rows() {
    let mut world = World::of("");
    for line in [
        "plan enterprise",
        "balance 1000000",
        "book Y bids 0.40x10 0.39x10 asks 0.50x10 0.51x10",
        "flag book_impact_depletion off",
    ] {
        assert_eq!(world.act(line), "");
    }
    world.act("buy Y 5 limit 0.30");
    let (rounds, warm_up) = (2_048, 1_024);
    let mut counts: Vec<(Count, Count)> = KINDS.iter().map(|_| Default::default()).collect();
    for round in 0..rounds {
        for (Kind { line, is_cancelled, .. }, (placed, ended)) in KINDS.iter().zip(&mut counts) {
            let id = if line.contains("id=") { format!("{round:032}") } else { String::new() };
            let words = format!("{line}{id}");
            let words: Vec<&str> = words.split_whitespace().collect();
            let placement = world.placement(words[0], &words[1..]);
            let mut sink = Sink(None);
            let allocations = counted(&mut world, Command::Place(Box::new(placement)), &mut sink);
            let order = sink.0.expect("it was answered");
            let after = if *is_cancelled { counted(&mut world, Command::Cancel { order }, &mut sink) } else { 0 };
            if round >= warm_up {
                placed.add(allocations);
                ended.add(after);
            }
        }
    }
    for (Kind { line, lists, own, .. }, (placed, ended)) in KINDS.iter().zip(&counts) {
        println!("{line}: {placed:?}, its cancel: {ended:?}");
        let most = placed.commands * own + placed.commands * lists / ROWS_PER_BLOCK + GROWN_MAX;
        assert!(placed.allocations <= most, "{line}: {placed:?}, at most {most}");
        assert_eq!(ended.allocations, 0, "the cancel of {line}");
    }
    let total: u64 = counts.iter().map(|(placed, ended)| placed.commands + ended.commands).sum();
    println!("allocations: {total} commands");
    assert!(total > 5_000);
}

/// Rows grow by blocks, and hashes by buckets: no order waits while all rows of a user are moved. Lists of blocks still
/// double, at 65,536 orders to 192 KiB.
#[test]
fn no_order_makes_a_large_allocation() {
    let mut world = World::of("");
    for line in ["plan enterprise", "balance 1000000", "book Y bids 0.40x10 asks 0.50x10"] {
        assert_eq!(world.act(line), "");
    }
    world.act("buy Y 5 limit 0.30");
    let (count, mut most) = (40_000, 0);
    for number in 0..count {
        let id = format!("id={number:032}");
        let placement = world.placement("buy", &["Y", "5", "limit", "0.30", "pro", &id]);
        let mut sink = Sink(None);
        most = most.max(measured(&mut world, Command::Place(Box::new(placement)), &mut sink).bytes_max);
        let order = sink.0.expect("it was answered");
        most = most.max(measured(&mut world, Command::Cancel { order }, &mut sink).bytes_max);
    }
    println!("orders with ids: {count}, at most {most} bytes for one");
    assert!(most <= AT_ONCE_MAX, "{most} bytes in one allocation");
}

/// A followed wallet gets its point of the minute before a command after that minute, without an allocation.
#[test]
fn a_point_by_the_minute_allocates_nothing() {
    let mut world = World::of("");
    for line in ["plan enterprise", "book Y bids 0.40x100 asks 0.50x100", "cycle"] {
        world.act(line);
    }
    for line in ["buy Y 5 limit 0.60", "minutes"] {
        world.act(line);
    }
    let mut minutes = 0;
    for _ in 0..40 {
        let placement = world.placement("buy", &["Y", "5", "limit", "0.30", "pro"]);
        let mut sink = Sink(None);
        counted(&mut world, Command::Place(Box::new(placement)), &mut sink);
        world.now = world.now.plus(MINUTE);
        // Another value gives another point.
        let bid = ["0.40", "0.41"][minutes % 2];
        world.act(&format!("book Y bids {bid}x100 asks 0.50x100"));
        let order = sink.0.expect("it was answered");
        assert_eq!(counted(&mut world, Command::Cancel { order }, &mut sink), 0, "minute {minutes}");
        minutes += 1;
    }
    let text = world.act("minutes");
    println!("{minutes} minutes: {text}");
    assert_eq!(text.matches(" | ").count(), minutes - 1, "a point each: {text}");
}

/// Maximum count of bytes that one order may allocate: the list of blocks, when it doubles.
const AT_ONCE_MAX: u64 = 128 << 10;

/// Allocations of the shard for one command.
fn counted(world: &mut World, command: Command, sink: &mut Sink) -> u64 {
    measured(world, command, sink).count_total
}

fn measured(world: &mut World, command: Command, sink: &mut Sink) -> allocation_counter::AllocationInfo {
    world.now = world.now.plus(1);
    let (owner, now) = (world.user, world.now);
    let envelope = Envelope { owner, command, received_at: now, reply: 0 };
    let shard = world.shard();
    allocation_counter::measure(|| shard.take(envelope, now, sink))
}
