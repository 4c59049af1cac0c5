//! Memory of users and orders: what the system counts as resident anonymous memory.
//!
//! Each figure comes from a process of its own, another instance of this program: memory that an earlier figure freed
//! would be reused unseen. The process creates a world and measures itself in between. Spare capacity of growing lists
//! and overhead of the allocator are included, since a server pays for them, too.
//!
//! Orders are never dropped: a cancelled or filled order stays in its user's history, so closed orders are measured as
//! well as open ones. The checkpoint keeps its own copy of users and markets; here it is made by reading a snapshot, as
//! after a start, and is measured separately.

use crate::chance::Chance;
use crate::crowd::{Crowd, Fitting, Open};
use crate::report::{ONE_BY_ONE, Report, Size};
use crate::role::Role;
use crate::seeded::Place;
use crate::server::Server;
use crate::world::{Out, Step, World};
use engine::format::Formats;
use engine::order::Side;
use engine::shard::{digest, snapshot};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use tools::machine;

/// Markets over which the orders are spread.
const MARKETS: u32 = 256;

/// What fills a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filling {
    /// Orders that rest.
    Open,
    /// Orders that rest, each with a client order id of 24 characters.
    Named,
    /// Orders that rested and were cancelled.
    Cancelled,
    /// Orders that were filled immediately, over two levels.
    Filled,
    /// Orders that rest, as a snapshot has them: the checkpoint's copy.
    Copy,
}

/// The task of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// What to fill memory with.
    pub filling: Filling,
    pub users: usize,
    pub orders: usize,
    /// Where the process of the open orders writes its snapshot, for the process of the copy.
    pub snapshot: PathBuf,
}

impl Task {
    /// Creates the world, measures it, and prints three numbers: bytes after the users, bytes after the orders, and a
    /// hash of the state.
    pub fn run(self) {
        let weighed = match self.filling {
            Filling::Copy => weigh_copy(&self.snapshot),
            filling => weigh_world(filling, self.users, self.orders, &self.snapshot),
        };
        println!("{} {} {}", weighed.users_bytes, weighed.orders_bytes, weighed.hash);
    }
}

/// The output of such a process.
struct Weighed {
    users_bytes: u64,
    orders_bytes: u64,
    hash: String,
}

pub fn run(size: Size, report: &mut Report) {
    let (users, wished) = (size.pick(1_000, 100_000), size.pick(20_000, 10_000_000));
    let fitting = Fitting::of(wished, size);
    let orders = fitting.orders;
    let place = tempfile::tempdir().expect("a temporary directory");
    let snapshot = place.path().join("snapshot");
    let weigh = |filling| weigh(filling, users, orders, &snapshot);

    let open = weigh(Filling::Open);
    let per_user = open.users_bytes as f64 / users as f64;
    report.figure("idle user with one key", per_user, "bytes");
    let of_order = |weighed: &Weighed| weighed.orders_bytes as f64 / orders as f64;
    for (what, weighed) in [
        ("open order", open),
        ("open order with a client's id", weigh(Filling::Named)),
        ("cancelled order, in the history", weigh(Filling::Cancelled)),
        ("filled order, with its fill and position", weigh(Filling::Filled)),
    ] {
        match fitting.refused() {
            Some(why) => report.refused(what, why),
            None => report.figure(what, of_order(&weighed), "bytes"),
        }
        report.computed(weighed.hash);
    }
    let file = snapshot.metadata().expect("the process of the open orders wrote it").len();
    let copy = weigh(Filling::Copy);
    report.figure("checkpoint's copy, of an open order with its part of a user", of_order(&copy), "bytes");
    report.figure("snapshot on the disk, of the same", file as f64 / orders as f64, "bytes");
    report.computed(copy.hash);
    whole_server(size, users, report);
    report.note("world", format!("{users} users, {orders} orders of {wished} wished for, {MARKETS} markets"));
    report.rate_note(ONE_BY_ONE);
    report.not_included(
        "pages of the log, which belong to files; memory made ahead of its use (engine.prefault_bytes, 64 MiB at most); \
         what the system keeps for the process",
    );
}

/// Anonymous memory of a server with that many users compared with one of a few.
fn whole_server(size: Size, users: usize, report: &mut Report) {
    let weighed = [1, users].map(|count| {
        let place = Place::seeded(count, size);
        let mut server = Server::start_on_pulse(&place.write_config_to_weigh());
        let bytes = server.anonymous_bytes();
        server.kill();
        bytes
    });
    let per_user = weighed[1].saturating_sub(weighed[0]) as f64 / (users - 1) as f64;
    report.figure("idle user with one key, of a whole server", per_user, "bytes");
    report.figure("a server with one user", weighed[0] as f64, "bytes");
}

fn weigh(filling: Filling, users: usize, orders: usize, snapshot: &Path) -> Weighed {
    let role = Role::Weigh(Task { filling, users, orders, snapshot: snapshot.to_owned() });
    let output = role.command().output().expect("this program can be started");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{filling:?}: {stdout}{}", String::from_utf8_lossy(&output.stderr));
    let words: Vec<&str> = stdout.split_whitespace().collect();
    let [users_bytes, orders_bytes, hash] = words[..] else { panic!("three words: {stdout:?}") };
    let number = |word: &str| word.parse().expect("a number of bytes");
    Weighed { users_bytes: number(users_bytes), orders_bytes: number(orders_bytes), hash: hash.to_owned() }
}

/// Bytes of the checkpoint keeper's copy of a state, of which `snapshot` is a snapshot.
pub fn copy_bytes(snapshot: &Path) -> u64 {
    weigh(Filling::Copy, 0, 0, snapshot).orders_bytes
}

fn own_bytes() -> u64 {
    machine::anonymous_bytes(std::process::id()).expect("this program runs")
}

fn weigh_world(filling: Filling, users: usize, orders: usize, snapshot: &Path) -> Weighed {
    let crowd = Crowd { users, markets: MARKETS, open: 0 };
    let mut world = World::new(MARKETS, &mut |_, _, _| {});
    let mut out = Out::new(|_, _, _: &[u8]| {});
    // The benches' own lists are not a cost of the engine: they are allocated before the first measurement.
    world.traders.reserve_exact(users);
    world.traders.extend(std::iter::repeat_n(crate::world::Trader::NOBODY, users));
    world.traders.clear();
    let mut open: Vec<Open> = vec![Open::NOTHING; if filling == Filling::Cancelled { orders } else { 0 }];
    let before = own_bytes();
    world.add_traders(crowd.users, &mut out);
    let with_users = own_bytes();
    let mut chance = Chance::seeded(31);
    out.orders = vec![engine::id::OrderId(0)];
    for number in 0..orders {
        let trader = number % users;
        let rest = Crowd::rest_step(trader, MARKETS, &mut chance);
        let envelope = match filling {
            Filling::Filled => {
                // Buys and sales alternate, each user in all markets one after the other: what is bought is sold again.
                let turn = number / users;
                let side = if turn.is_multiple_of(2) { Side::Buy } else { Side::Sell };
                let market = ((turn / 2 + trader) % MARKETS as usize) as u32;
                world.envelope(0, Step::Take { trader, market, side }, &[])
            }
            Filling::Named => world.named_envelope(0, rest, format!("weigh-{number:018}")),
            Filling::Open | Filling::Cancelled | Filling::Copy => world.envelope(0, rest, &[]),
        };
        world.take(envelope, &mut out);
        if let Some(place) = open.get_mut(number) {
            *place = Open { trader: trader as u32, order: out.orders[0] };
        }
    }
    for Open { trader, order } in &open {
        let envelope = world.envelope(0, Step::Cancel { trader: *trader as usize, of: 0 }, &[*order]);
        world.take(envelope, &mut out);
    }
    let with_orders = own_bytes();
    assert_eq!(out.refused, 0, "every command does something");
    if filling == Filling::Open {
        let (markets, shard) = world.state();
        let mut file = BufWriter::new(File::create(snapshot).expect("room for a snapshot"));
        snapshot::write(Formats::Newest, markets, &[shard], &mut file)
            .and_then(|_| file.flush())
            .expect("room for a snapshot");
    }
    let hash = hex(&world.digest());
    Weighed {
        users_bytes: with_users.saturating_sub(before),
        orders_bytes: with_orders.saturating_sub(with_users),
        hash,
    }
}

/// The whole copy, users and orders.
fn weigh_copy(snapshot: &Path) -> Weighed {
    let before = own_bytes();
    let mut file = BufReader::new(File::open(snapshot).expect("the process of the open orders wrote it"));
    let state = snapshot::read(&mut file, 1).expect("our own snapshot");
    let bytes = own_bytes().saturating_sub(before);
    let hash = hex(&digest::digest(&state.markets, &state.users.iter().collect::<Vec<_>>()));
    Weighed { users_bytes: 0, orders_bytes: bytes, hash }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
