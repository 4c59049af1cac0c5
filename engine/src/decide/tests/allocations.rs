//! What an order allocates on its way through the shard: nothing, but for the rows it is kept in, which come in blocks. There
//! are two exceptions: an id of more than 38 bytes, and a quantity that was sent finer than 4 decimals, whose text is kept.

use super::world::World;
use crate::command::{Answer, Command, Envelope};
use crate::id::{OrderId, UserId};
use crate::notice::Notice;
use crate::shard::{Outbox, Room};
use crate::time::{MINUTE, Timestamp};

/// Takes everything and keeps only which order it was about.
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
            other => panic!("every command does something: {other:?}"),
        }
    }
}

/// Commands of one kind, and how many allocations they made.
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

/// An order, in the words of the scenarios.
struct Kind {
    line: &'static str,
    is_cancelled: bool,
    /// Lists of rows that it adds to: order, fill, position, remembered request, the buckets where its id is looked up; and
    /// two for what few orders have (its sender's id, or what stood inside its limit when it was killed), of which a
    /// block is two allocations.
    lists: u64,
    /// What it keeps outside of its rows: an id of more than 38 bytes, the text of a finer quantity.
    own: u64,
}

/// Of each list of rows an odd number of kinds adds to it, nine orders, five requests and so on: else all blocks would begin
/// with the same kind.
const KINDS: [Kind; 9] = [
    Kind { line: "buy Y 5 limit 0.30 pro", is_cancelled: true, lists: 1, own: 0 },
    Kind { line: "buy Y 5 limit 0.30 pro id=", is_cancelled: true, lists: 5, own: 0 },
    Kind { line: "buy Y 5 limit 0.30 pro implicit id=s", is_cancelled: true, lists: 5, own: 0 },
    Kind { line: "buy Y 5 limit 0.30 pro id=longer-", is_cancelled: true, lists: 5, own: 1 },
    Kind { line: "buy Y 5 limit 0.30 pro rounded=5.00001 id=r", is_cancelled: true, lists: 5, own: 1 },
    // Every other fill is a sale's, so that every block of fills begins with one of these.
    Kind { line: "buy Y 15 limit 0.60 pro", is_cancelled: false, lists: 4, own: 0 },
    Kind { line: "sell Y 15 limit 0.30 pro", is_cancelled: false, lists: 1, own: 0 },
    Kind { line: "buy Y 5 limit 0.30 fok pro id=f", is_cancelled: false, lists: 5, own: 0 },
    Kind { line: "buy Y 5000 limit 0.60 fok pro", is_cancelled: false, lists: 3, own: 0 },
];
/// Rows of a block, about; a list of blocks or of numbers that grows is rarer still.
const ROWS_PER_BLOCK: u64 = 16;
/// Those of one kind that may grow something else: doubling is rare.
const GROWN_MAX: u64 = 16;

#[test]
fn an_order_allocates_nothing_but_the_rows_it_is_kept_in() {
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

/// Rows grow by blocks, and what is looked up by id by buckets: whoever has many orders makes nobody wait while all that he
/// has is moved. Lists of blocks still double, at 65,536 orders to 192 KiB.
#[test]
fn no_order_allocates_much_at_once() {
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
    assert!(most <= AT_ONCE_MAX, "{most} bytes at once");
}

/// A followed wallet has its point of equity by the minute before a command behind that minute, in room that is there.
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
        // Another worth, another point.
        let bid = ["0.40", "0.41"][minutes % 2];
        world.act(&format!("book Y bids {bid}x100 asks 0.50x100"));
        let order = sink.0.expect("it was answered");
        assert_eq!(counted(&mut world, Command::Cancel { order }, &mut sink), 0, "minute {minutes}");
        minutes += 1;
    }
    let told = world.act("minutes");
    println!("{minutes} minutes: {told}");
    assert_eq!(told.matches(" | ").count(), minutes - 1, "a point each: {told}");
}

/// Bytes that one order may allocate: the list of the blocks of so many rows, when it doubles.
const AT_ONCE_MAX: u64 = 128 << 10;

/// Allocations of one command, made by the shard.
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
