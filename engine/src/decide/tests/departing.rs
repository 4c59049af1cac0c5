//! Rows that leave memory while the shard serves: in pieces, without a record, and without a change of the digest.

use super::world::World;
use crate::command::{Answer, Command, Envelope};
use crate::departed::{Departures, Leaving};
use crate::fact;
use crate::id::MARKETS;
use crate::market::Markets;
use crate::market::mutation::MarketMutation;
use crate::mutation::codec;
use crate::reject::Reject;
use crate::shard::{Room, digest};
use crate::time::{Timestamp, UtcDay};
use crate::user::Users;
use std::sync::Arc;

/// The state that the mover has: a replay of the records.
fn replayed(world: &World) -> Users {
    let mut users = Users::default();
    for (owner, payload) in &world.out.records {
        for fact in codec::decode(world.rules.formats.record(), payload).expect("our own version") {
            users.apply(*owner, &fact.expect("our own bytes"));
        }
    }
    users
}

/// The same rows in pieces with their sums; they leave `users`.
fn pieces(users: &mut Users, leaving: &[Leaving]) -> Vec<(Leaving, [u8; 32])> {
    let mut pieces = Vec::new();
    for of in leaving {
        for orders in of.orders.chunks(Departures::PIECE_ROWS) {
            let piece = Leaving { user: of.user, orders: orders.to_vec(), positions: Vec::new() };
            pieces.push((piece.clone(), users.depart(&piece)));
        }
        let piece = Leaving { user: of.user, orders: Vec::new(), positions: of.positions.clone() };
        pieces.push((piece.clone(), users.depart(&piece)));
    }
    pieces
}

#[test]
fn rows_leave_in_pieces_between_which_orders_are_served() {
    let digest = |users: &Users| digest::digest(&Markets::default(), &[users]);
    let mut cases = 0;
    for ended in [1, Departures::PIECE_ROWS, 3 * Departures::PIECE_ROWS + 1] {
        let mut world = World::of("");
        for line in ["plan pro", "tier pro", "balance 100000", "book Y bids 0.40x900000 asks 0.42x900000"] {
            world.act(line);
        }
        assert!(world.act("buy Y 5 limit 0.30").starts_with("PENDING"));
        for nth in 2..ended + 2 {
            // Filled ones and cancelled ones.
            let answer = match nth % 2 {
                0 => world.act("buy Y 5 limit 0.42"),
                _ => world.act("buy Y 5 limit 0.30") + &world.act(&format!("cancel #{nth}")),
            };
            assert!(answer.contains("FILLED") || answer.contains("CANCELLED"), "{answer}");
        }
        let mut copy = replayed(&world);
        let leaving = copy.leaving(Timestamp(u64::MAX), usize::MAX);
        assert_eq!(leaving.iter().map(|of| of.orders.len()).sum::<usize>(), ended, "all but the resting one");
        let departures = Arc::new(Departures { upto: 77, pieces: pieces(&mut copy, &leaving) });
        let (before, records, now) = (digest(world.users()), world.out.records.len(), world.now);
        let (shard, inbox, out) = world.parts();
        let envelope =
            |reply| Envelope { owner: MARKETS, command: Command::Depart(departures.clone()), received_at: now, reply };
        shard.take(envelope(900), now, out);
        assert!(matches!(out.answers.pop(), Some((900, Answer::Done))));
        assert_eq!(shard.users().departed_upto(), 77, "readers ask the store from here on");
        let mut turns = 0;
        while shard.has_work() {
            let there = shard.users().iter().map(|user| user.orders().len()).sum::<usize>();
            shard.turn(inbox, now, out);
            let left = there - shard.users().iter().map(|user| user.orders().len()).sum::<usize>();
            assert!(left <= Departures::PIECE_ROWS, "{left} rows leave in one turn");
            assert_eq!(digest(shard.users()), before, "after {turns} turns");
            turns += 1;
        }
        assert!(turns >= ended.div_ceil(Departures::PIECE_ROWS), "{turns} turns for {ended} rows");
        assert_eq!(digest(&copy), before);
        // A repeat changes nothing.
        shard.take(envelope(901), now, out);
        while shard.has_work() {
            shard.turn(inbox, now, out);
        }
        assert_eq!(out.records.len(), records, "nothing is journaled");
        assert_eq!(world.the_user().orders().len(), 1);
        assert_eq!(world.the_user().open_orders_count(), 1);
        // Trading goes on.
        assert!(!world.act("buy Y 5 limit 0.42").starts_with("error"));
        world.check().expect("all invariants, and a replay without departures has the same digest");
        cases += turns;
    }
    println!("rows that leave between turns: {cases} cases");
}

/// That history is cut is one record about no user, which changes nothing in the shard; it needs ample room.
#[test]
fn a_cut_of_the_history_is_journaled() {
    let mut world = World::of("");
    for line in
        ["plan pro", "tier pro", "balance 100000", "book Y bids 0.40x900000 asks 0.42x900000", "buy Y 5 limit 0.30"]
    {
        world.act(line);
    }
    let (before, records) = (digest::digest(&Markets::default(), &[world.users()]), world.out.records.len());
    let now = world.now;
    let mut cases = 0;
    for (room, day) in [(Room::None, 3), (Room::ReserveOnly, 3), (Room::Ample, 20_784)] {
        let (shard, _, out) = world.parts();
        out.room = room;
        let command = Command::CutHistory { day: UtcDay(day) };
        shard.take(Envelope { owner: MARKETS, command, received_at: now, reply: 902 }, now, out);
        let (_, answer) = out.answers.pop().expect("an answer");
        match room {
            Room::Ample => assert!(matches!(answer, Answer::Done), "{answer:?}"),
            _ => assert!(matches!(answer, Answer::Refused(Reject::NoRoom)), "{answer:?}"),
        }
        assert_eq!(out.records.len() - records, usize::from(room == Room::Ample));
        cases += 1;
    }
    let (owner, payload) = world.out.records.last().expect("a record");
    let facts: Vec<MarketMutation> = codec::decode(world.rules.formats.record(), payload)
        .expect("our own version")
        .collect::<Result<_, _>>()
        .expect("our own bytes");
    assert_eq!(*owner, MARKETS);
    assert_eq!(facts, [MarketMutation::HistoryCut(fact::HistoryCut { day: 20_784, at: now })]);
    assert_eq!(digest::digest(&Markets::default(), &[world.users()]), before);
    println!("cuts that are journaled: {cases} cases");
}
