//! One order through a shard: decided, applied, encoded. The reference is a bare textbook book without users, money or
//! a log, fed with the same stream.

use crate::floor::Floor;
use crate::report::{Report, Size, nanoseconds, timed};
use crate::world::{LEVEL_SHARES, Out, Step, World, steps};
use engine::id::{OrderId, UserId};
use engine::order::Side;
use engine::ring::Ring;
use engine::time::Timestamp;
use hdrhistogram::Histogram;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 5;
/// A textbook book takes about 100 ns an operation on a quiet core; below a third of that rate the core was shared.
const TEXTBOOK_FLOOR: Floor = Floor { of: "a bare textbook book", least: 3_000_000.0 };
/// Commands that are made before the clock starts.
const CHUNK: usize = 4_096;
/// Most queued commands before a turn of the shard.
const RING_SLOTS: usize = 256;
/// A ring buffer that records are copied to, as an append would.
const RING_BYTES: usize = 1 << 20;

pub fn run(size: Size, report: &mut Report) {
    let (users, markets) = (size.pick(10, 1_000), 64);
    let stream = steps(size.pick(2_000, 400_000), users, markets);
    // The ids of the orders are the same in each run, so one run determines them for all others.
    let known = once(&stream, users, markets, &[], |world, out, chunk| {
        for envelope in chunk {
            world.take(envelope, out);
        }
    });
    report.computed(known.digest);
    report.computed(known.record_bytes.to_le_bytes());

    let (mut ratios, mut bare_rates, mut least) = (Vec::new(), Vec::new(), f64::MAX);
    let (mut gains, mut least_of_turns, mut turned) = (Vec::new(), f64::MAX, None);
    let mut taken = 0;
    for _ in 0..size.pick(1, ROUNDS) {
        let mut by_turns = 0.0;
        let ring = Ring::new(RING_SLOTS);
        let ran = once(&stream, users, markets, &known.orders, |world, out, chunk| {
            by_turns += timed(|| world.turn(&ring, chunk, out)).0;
        });
        assert_eq!(*turned.get_or_insert(ran.digest), ran.digest, "the same stream, the same state");
        let mut ours = 0.0;
        let ran = once(&stream, users, markets, &known.orders, |world, out, chunk| {
            ours += timed(|| chunk.into_iter().for_each(|envelope| world.take(envelope, out))).0;
        });
        assert_eq!(ran.digest, known.digest, "the same stream, the same state");
        let (bare, walked) = timed(|| Textbook::of(markets).run(black_box(&stream)));
        taken = walked;
        ratios.push(bare / by_turns);
        bare_rates.push(stream.len() as f64 / bare);
        gains.push(ours / by_turns);
        least = least.min(ours / stream.len() as f64);
        least_of_turns = least_of_turns.min(by_turns / stream.len() as f64);
    }
    report.computed(taken.to_le_bytes());
    report.figure("one command in batches over a ring, least of the rounds", least_of_turns * 1e9, "ns");
    report.figure("that is", 1.0 / least_of_turns, "commands a second");
    report.ratio_above(&[(&TEXTBOOK_FLOOR, &bare_rates)], "rate beside a bare textbook book", ratios);
    report.figure("one command alone, least of the rounds", least * 1e9, "ns");
    report.ratio_to_itself("rate in batches beside one at a time", gains);

    let mut kinds =
        [("order that rests", nanoseconds()), ("cancel", nanoseconds()), ("order that fills", nanoseconds())];
    let mut at = 0;
    once(&stream, users, markets, &known.orders, |world, out, chunk| {
        for envelope in chunk {
            let (_, nanos): &mut (_, Histogram<u64>) = &mut kinds[kind(stream[at])];
            let begun = Instant::now();
            world.take(envelope, out);
            nanos.saturating_record(begun.elapsed().as_nanos() as u64);
            at += 1;
        }
    });
    for (what, nanos) in &kinds {
        report.percentiles(what, nanos);
    }
    report.figure("clock read, part of each percentile", clock_nanos(), "ns");
    report.figure("record, mean", known.record_bytes as f64 / stream.len() as f64, "bytes");
    report.note(
        "stream",
        format!(
            "{} commands of {users} users in {markets} markets, 5 rest : 4 cancel : 1 fills over two levels",
            stream.len()
        ),
    );
    report.rate_note("none: as fast as it goes, alone or in batches of queued commands, as each row says");
    report.not_included("making the command, checksum and append of the record, the log, any socket");
}

fn kind(step: Step) -> usize {
    match step {
        Step::Rest { .. } => 0,
        Step::Cancel { .. } => 1,
        Step::Take { .. } => 2,
    }
}

/// The result of a run.
struct Ran {
    orders: Vec<OrderId>,
    digest: [u8; 32],
    record_bytes: u64,
}

/// Runs the stream in a new world; `take` runs the commands of a chunk. Without `known` orders the commands are made
/// one by one, since a cancel needs the id of its order.
fn once<T>(stream: &[Step], users: usize, markets: u32, known: &[OrderId], mut take: T) -> Ran
where
    T: FnMut(&mut World, &mut Out<Copying>, Vec<engine::command::Envelope<usize>>),
{
    let mut world = World::new(markets, &mut |_, _, _| {});
    let mut out = Out::new(copying());
    world.add_traders(users, &mut out);
    let setup_bytes = out.record_bytes;
    out.orders = vec![OrderId(0); stream.len()];
    let chunk = if known.is_empty() { 1 } else { CHUNK };
    for (number, steps) in stream.chunks(chunk).enumerate() {
        let orders = if known.is_empty() { &out.orders } else { known };
        let made = steps.iter().enumerate();
        let envelopes = made.map(|(at, step)| world.envelope(number * chunk + at, *step, orders)).collect();
        take(&mut world, &mut out, envelopes);
    }
    assert_eq!(out.refused, 0, "every command has an effect");
    let takes = stream.iter().filter(|step| matches!(step, Step::Take { .. })).count();
    assert!(world.fills_count() >= takes, "every take fills: {} of {takes}", world.fills_count());
    Ran { orders: out.orders, digest: world.digest(), record_bytes: out.record_bytes - setup_bytes }
}

type Copying = Box<dyn FnMut(UserId, Timestamp, &[u8])>;

fn copying() -> Copying {
    let (mut ring, mut at) = (vec![0_u8; RING_BYTES], 0);
    Box::new(move |_, _, payload| {
        if at + payload.len() > RING_BYTES {
            at = 0;
        }
        ring[at..at + payload.len()].copy_from_slice(payload);
        at += payload.len();
        black_box(&ring);
    })
}

fn clock_nanos() -> f64 {
    let times = 10_000;
    let (seconds, ()) = timed(|| {
        for _ in 0..times {
            black_box(Instant::now());
        }
    });
    seconds * 1e9 / f64::from(times)
}

/// A textbook book: a tree of price levels with a queue each, and a map of orders. Orders have no owner, nothing is
/// paid or logged.
struct Textbook {
    markets: Vec<Sides>,
    orders: HashMap<usize, (u32, u16)>,
}

#[derive(Default)]
struct Sides {
    bids: BTreeMap<u16, VecDeque<usize>>,
    /// The venue's levels, which a take does not change.
    offered: BTreeMap<u16, u64>,
}

impl Textbook {
    fn of(markets: u32) -> Textbook {
        let sides = || Sides { bids: BTreeMap::new(), offered: (51..61).map(|cents| (cents, LEVEL_SHARES)).collect() };
        Textbook { markets: (0..markets).map(|_| sides()).collect(), orders: HashMap::new() }
    }

    /// Runs the stream; returns the cents of all takes.
    fn run(&mut self, stream: &[Step]) -> u64 {
        let mut cents_taken = 0;
        for (index, step) in stream.iter().enumerate() {
            match *step {
                Step::Rest { market, cents, .. } => {
                    self.markets[market as usize].bids.entry(cents).or_default().push_back(index);
                    self.orders.insert(index, (market, cents));
                }
                Step::Cancel { of, .. } => {
                    let (market, cents) = self.orders.remove(&of).expect("it rests");
                    let bids = &mut self.markets[market as usize].bids;
                    let level = bids.get_mut(&cents).expect("it has a level");
                    let at = level.binary_search(&of).expect("a queue is in order of arrival");
                    level.remove(at);
                    if level.is_empty() {
                        bids.remove(&cents);
                    }
                }
                Step::Take { market, side, .. } => {
                    let mut left = 45;
                    for (cents, shares) in &self.markets[market as usize].offered {
                        let taken = left.min(*shares);
                        let cents = if side == Side::Buy { *cents } else { 100 - *cents };
                        cents_taken += taken * u64::from(cents);
                        left -= taken;
                        if left == 0 {
                            break;
                        }
                    }
                }
            }
        }
        cents_taken
    }
}
