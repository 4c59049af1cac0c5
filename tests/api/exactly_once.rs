//! The streams report what REST shows, each execution exactly once (gateway/docs/streams.md §1.6): random orders on a
//! moving book, followers that disconnect and resume with the last number they read, a server that is killed.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use tests::cases::Cases;
use tests::chance::Chance;
use tests::json::{at, int, list, micros, text};
use tests::socket::Socket;
use tests::world::{World, changed, limit, market};

const STEPS: usize = 250;
const USERS: usize = 2;

/// A client that follows one channel and remembers what it read.
struct Follower {
    user: usize,
    /// `/v1/ws/executions`, else the venue's channel.
    executions: bool,
    socket: Socket,
    /// Number and trade, as read.
    read: Vec<(i64, i64)>,
}

impl Follower {
    fn new(world: &World, user: usize, executions: bool) -> Follower {
        Follower { user, executions, socket: Follower::open(world, user, executions, 0), read: Vec::new() }
    }

    fn open(world: &World, user: usize, executions: bool, from: i64) -> Socket {
        let key = world.users[user].key.as_str();
        if executions {
            let path = format!("/v1/ws/executions?from_seq={from}");
            return Socket::open(world.server.address(), &path, &[("X-API-Key", key)]);
        }
        let mut socket = Socket::open(world.server.address(), &format!("/ws/user?from_seq={from}"), &[]);
        socket.send(&json!({"type": "user", "auth": {"apiKey": key}, "markets": []}));
        socket
    }

    /// Resumes after its last number.
    fn come_back(&mut self, world: &World) {
        let from = self.read.last().map_or(0, |(seq, _)| *seq);
        self.socket = Follower::open(world, self.user, self.executions, from);
    }

    fn take(&mut self, frame: &Value) {
        match frame.get("type").and_then(Value::as_str) {
            Some("fill") => self.read.push((int(frame, "/user_seq"), int(frame, "/trade_id"))),
            Some("TRADE") => {
                let trade = text(frame, "/id").parse().expect("a trade's number");
                self.read.push((int(frame, "/user_seq"), trade));
            }
            Some("connected") => {}
            _ => panic!("no frame of this channel: {frame}"),
        }
    }

    fn look(&mut self) {
        for frame in self.socket.so_far() {
            self.take(&frame);
        }
    }
}

#[test]
fn every_execution_is_sent_exactly_once() {
    let cases = Cases::of("executions sent");
    let mut chance = Chance::from_env("PAPERTAPE_STREAM_SEED");
    // On one thread, or with shards and a committer of their own.
    let shards = chance.between(1, 2).to_string();
    let mut world = World::start_with(USERS, |place| {
        place.set("flags", "match_interval_ms", "100");
        place.set("engine", "shards", &shards);
    });
    let rain = world.markets.rain.clone();
    let mut followers: Vec<Follower> = (0..2 * USERS).map(|nth| Follower::new(&world, nth / 2, nth % 2 == 0)).collect();
    let (mut kills, mut returns) = (0, 0);
    for _ in 0..STEPS {
        let user = chance.below(USERS);
        let mut client = world.user(user);
        match chance.below(100) {
            0..45 => {
                let price = *chance.pick(&["0.31", "0.34", "0.37", "0.40", "0.43"]);
                let quantity = chance.between(5, 20).to_string();
                let resting = limit(&rain, "BUY", price, &quantity);
                let body = match chance.below(4) {
                    0 => market(&rain, "BUY", "0.95", &quantity),
                    1 => changed(&limit(&rain, "SELL", "0.45", &quantity), &json!({})),
                    _ => resting,
                };
                let status = client.post("/v1/orders", &body).status;
                // There may be nothing to sell, and no seller.
                assert!([200, 400, 422].contains(&status), "{status} for {body}");
            }
            45..70 => {
                let (bid, ask) =
                    *chance.pick(&[("0.30", "0.36"), ("0.35", "0.40"), ("0.46", "0.50"), ("0.41", "0.42")]);
                let size = chance.between(3, 60).to_string();
                world.tape.books(&rain, &[(bid, &size)], &[(ask, &size)]);
                // The following orders find this book.
                world.until(&format!("/v1/book?token_id={}", rain.yes()), |book| {
                    let asks = list(book, "/asks").iter();
                    let mut asks = asks.map(|level| (micros(text(level, "/price")), micros(text(level, "/size"))));
                    asks.any(|level| level == (micros(ask), micros(&size)))
                });
            }
            70..74 => _ = client.post("/v1/cancel-all?confirm=true", &json!({})).expect(200),
            74..88 => chance.pick_mut(&mut followers).look(),
            88..97 => {
                chance.pick_mut(&mut followers).come_back(&world);
                returns += 1;
            }
            _ => {
                world.crash();
                followers.iter_mut().for_each(|follower| follower.come_back(&world));
                kills += 1;
            }
        }
    }
    let mut received = 0;
    for user in 0..USERS {
        let mut client = world.user(user);
        client.post("/v1/cancel-all?confirm=true", &json!({})).expect(200);
        let listed = client.get("/v1/data/trades?dialect=strict&limit=500").expect(200);
        let rows: BTreeMap<i64, bool> = list(&listed, "/data")
            .iter()
            .map(|row| (text(row, "/id").parse().expect("a number"), at(row, "/trader_side") == "MAKER"))
            .collect();
        let mut numbers: BTreeMap<i64, i64> = BTreeMap::new();
        for follower in followers.iter_mut().filter(|follower| follower.user == user) {
            let expected: Vec<i64> =
                rows.iter().filter(|(_, maker)| !follower.executions || **maker).map(|(id, _)| *id).collect();
            follower.come_back(&world);
            while follower.read.len() < expected.len() {
                let frame = follower.socket.json();
                follower.take(&frame);
            }
            follower.look();
            let trades: Vec<i64> = follower.read.iter().map(|(_, trade)| *trade).collect();
            assert_eq!(trades, expected, "user {user}, executions: {}", follower.executions);
            assert!(follower.read.windows(2).all(|two| two[0].0 < two[1].0));
            for (seq, trade) in &follower.read {
                assert_eq!(*numbers.entry(*trade).or_insert(*seq), *seq, "one number on both channels");
            }
            received += trades.len();
        }
    }
    println!("{received} executions sent, {kills} kills, {returns} returns, {shards} shards");
    assert!(received > 50, "a test of little");
    cases.add(received);
}
