//! Orders beside the mover, and after many ended ones.

use super::past::{Past, Store, look_up};
use crate::book::{Going, books};
use crate::http::{Client, write_tape};
use crate::load::Load;
use crate::mixed::stream;
use crate::orders::Orders;
use crate::report::{PREFAULTED, Report, Size, median};
use crate::role::Role;
use crate::seeded::Place;
use crate::server::{Server, TICK_MICROS};
use crate::world::World;
use engine::amount::TickSize;
use engine::id::OrderId;

const ROUNDS: usize = 5;
/// Rounds of a stream after ended orders, which are made again for each.
const STREAM_ROUNDS: usize = 3;
/// Connections of the orders beside the mover.
const CONNECTIONS: usize = 64;
/// Small segments and a checkpoint with each: the mover always works.
const SEGMENT_BYTES: u64 = 4 << 20;
/// Orders between two looks at the log of a server that has not moved any yet, and all of them.
const MORE: usize = 500;
const MORE_MAX: usize = 10_000;
/// Part of the orders that must have left memory by the end of the rounds: with fewer the mover did not work.
const MOVED_PART: f64 = 0.5;

/// A server whose ended orders stay in memory, or leave it as soon as they may.
struct Moving {
    place: Place,
    server: Server,
    load: Load<Client>,
}

impl Moving {
    fn start(moves: bool, size: Size) -> Moving {
        let connections = size.pick(2, CONNECTIONS);
        let place = Place::seeded_in(connections, size.pick(1 << 20, SEGMENT_BYTES));
        let token = write_tape(&place.tape());
        let config = place.write_config("process");
        let text = std::fs::read_to_string(&config).expect("just written");
        let mut text = text.replacen("[journal]\n", "[journal]\ncheckpoint_segments = 1\n", 1);
        let window = if moves { (1, 16) } else { (604_800, 1 << 24) };
        text.push_str(&format!("[history]\nhot_seconds = {}\nhot_rows_max = {}\n", window.0, window.1));
        std::fs::write(&config, text).expect("room for a configuration");
        let server = Server::start_as(&Role::Server { config, has_pulse: false });
        let clients = place.keys.iter().enumerate().map(|(number, key)| {
            let orders = Orders::new(format!("moving-{number}"), &token).all_filled();
            Client::with(orders, key.expose())
        });
        let load = Load::connect(server.address, clients).expect("the server listens");
        server.pause();
        Moving { place, server, load }
    }

    /// Waits until some orders have left memory, and sends some more for that: a small run may be shorter than the way to a
    /// checkpoint. Returns their count.
    fn wait_until_moved(&mut self, connections: usize) -> usize {
        let mut sent = 0;
        self.server.resume();
        self.place.wait_until_moved(|| {
            if sent < MORE_MAX {
                let reached = self.load.run(connections, MORE, None, Client::order).expect("the server answers");
                reached.check_well(MORE);
                sent += MORE;
            }
        });
        sent
    }
}

/// H6: filled orders over HTTP on two servers in turns; in one of them all orders soon leave memory. The idle server is
/// stopped.
pub fn beside_the_mover(size: Size, report: &mut Report) {
    let mut both = [false, true].map(|moves| Moving::start(moves, size));
    let connections = size.pick(2, CONNECTIONS);
    // A round writes several segments, so that it has several moves.
    let (count, rounds) = (size.pick(3_000, 60_000), size.pick(1, ROUNDS));
    let (mut ratios, mut rates, mut ticks) = (Vec::new(), [Vec::new(), Vec::new()], [0; 2]);
    for round in 0..=rounds {
        let mut reached = [0.0; 2];
        for at in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
            let Moving { server, load, .. } = &mut both[at];
            server.resume();
            let before = server.ticks();
            let answered = load.run(connections, count, None, Client::order).expect("the server answers");
            answered.check_well(count);
            reached[at] = answered.rate();
            // The first round is cold.
            if round > 0 {
                ticks[at] += server.ticks() - before;
            }
            server.pause();
        }
        if round > 0 {
            ratios.push(reached[1] / reached[0]);
            (0..2).for_each(|at| rates[at].push(reached[at]));
        }
    }
    for (at, what) in ["without the mover", "beside the mover"].into_iter().enumerate() {
        report.middle(&format!("orders over HTTP {what}"), &rates[at], "a second");
        let micros = ticks[at] as f64 * TICK_MICROS / (rounds * count) as f64;
        report.figure(&format!("processor time of an order {what}"), micros, "us");
    }
    let sent = (rounds + 1) * count;
    // The server is stopped, so its directory does not change.
    let moved = both[1].place.orders().map_or(0, |(_, left)| left);
    report.figure("orders that left memory during the rounds", moved as f64, "");
    let what = "orders over HTTP: rate beside the mover, of that without";
    if size == Size::Full && (moved as f64) < MOVED_PART * sent as f64 {
        report.refused(what, format!("refused: the mover had no time, it moved {moved} of {sent} orders"));
    } else {
        report.ratio_to_itself(what, ratios);
    }
    let more = both[1].wait_until_moved(connections);
    let left = both.map(|Moving { place, mut server, load }| {
        drop(load);
        server.resume();
        server.kill();
        place.orders().expect("a sound log")
    });
    assert_eq!(left.map(|(kept, _)| kept), [sent, sent + more], "what was acknowledged is there, and nothing else");
    let left = left.map(|(_, left)| left);
    if left[0] > 0 || left[1] == 0 {
        report.failed(format!("{left:?} orders left memory, and some must of one server only"));
    }
}

/// H9: the stream of P9, with every order's id, after many ended orders and after none.
pub fn after_ended_ones(size: Size, orders: usize, report: &mut Report) {
    let (operations, _) = stream(size.pick(3_000, 1_000_000));
    let users = size.pick(10, 1_000);
    let mut known: [Vec<OrderId>; 2] = Default::default();
    let (mut ratios, mut rates, mut look_ups) = (Vec::new(), [Vec::new(), Vec::new()], 0);
    // The first round determines the ids of the orders, so that the others need not wait for them.
    for round in 0..=size.pick(1, STREAM_ROUNDS) {
        let mut seconds = [0.0; 2];
        for at in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
            let place = tempfile::tempdir().expect("a temporary directory");
            let segment_bytes = size.pick(4 << 20, 64 << 20);
            let make = |record: &mut super::past::Record| World::with_books(1, TickSize(10), books(), record);
            let mut past = Past::create(&place.path().join("data"), segment_bytes, Store::History, make);
            past.world.add_traders(users, &mut past.out);
            if at == 1 {
                past.live(orders, 0..users);
            }
            let (reader, journal) = (past.reader().expect("a store"), past.journal.clone());
            let going = Going { world: &mut past.world, out: &mut past.out, books_count: 1 };
            let mut found = 0;
            seconds[at] = going.go(
                &operations,
                &known[at],
                || journal.borrow_mut().tend(),
                |world, out| found += look_up(&reader, world, out),
            );
            drop(journal);
            if round == 0 {
                known[at] = past.out.orders.clone();
                report.computed(past.world.digest());
            } else if at == 1 {
                look_ups = found;
            }
            past.close();
        }
        if round > 0 {
            ratios.push(seconds[1] / seconds[0]);
            (0..2).for_each(|at| rates[at].push(operations.len() as f64 / seconds[at]));
        }
    }
    for (at, what) in ["no ended orders", "many ended orders"].into_iter().enumerate() {
        report.figure(&format!("one operation of P9 after {what}"), 1e9 / median(&rates[at]), "ns");
    }
    report.ratio_to_itself("one operation of P9 after many ended orders: time beside that after none", ratios);
    report.figure("operations that the store was asked for", look_ups as f64, "");
    report.note("memory in process", PREFAULTED);
}
