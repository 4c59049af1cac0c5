//! Rows that leave memory while the shard serves: in pieces, without a record, and without a change of the digest.

use super::world::World;
use crate::command::{Answer, Command, Envelope, Query};
use crate::departed::{Departures, Leaving};
use crate::fact;
use crate::id::MARKETS;
use crate::market::Markets;
use crate::market::mutation::MarketMutation;
use crate::mutation::codec;
use crate::rehearsal::{AddressKind, DeclaredAddress};
use crate::reject::Reject;
use crate::ring::Ring;
use crate::shard::bound::EndedBound;
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

/// A shard whose queue never ends drops rows faster than they come: a piece for every 16 commands, in a turn as well as one
/// by one.
#[test]
fn rows_leave_while_commands_never_end() {
    const PIECE: usize = 4;
    let mut cases = 0;
    // (commands, whether they come in one turn, pieces that leave)
    for (commands, is_turn, expected) in [
        (0, true, 1),
        (15, true, 1),
        (16, true, 2),
        (47, true, 3),
        (255, true, 16),
        (256, true, 17),
        (1_000, true, 17),
        (15, false, 0),
        (16, false, 1),
        (31, false, 1),
        (256, false, 16),
    ] {
        let mut world = World::of("");
        for line in ["plan pro", "tier pro", "balance 100000", "book Y bids 0.40x900000 asks 0.42x900000"] {
            world.act(line);
        }
        let orders = 18 * PIECE;
        for nth in 1..=orders {
            world.act("buy Y 5 limit 0.30");
            assert!(world.act(&format!("cancel #{nth}")).contains("CANCELLED"));
        }
        let mut copy = replayed(&world);
        let mut pieces = Vec::new();
        for of in copy.leaving(Timestamp(u64::MAX), usize::MAX) {
            for orders in of.orders.chunks(PIECE) {
                let piece = Leaving { user: of.user, orders: orders.to_vec(), positions: Vec::new() };
                let sum = copy.depart(&piece);
                pieces.push((piece, sum));
            }
        }
        assert_eq!(pieces.len(), orders / PIECE);
        let (now, owner, inbox) = (world.now, world.user, Ring::new(1_024));
        let (shard, _, out) = world.parts();
        let command = Command::Depart(Arc::new(Departures { upto: 77, pieces }));
        shard.take(Envelope { owner: MARKETS, command, received_at: now, reply: 900 }, now, out);
        let query = || Envelope { owner, command: Command::Query(Query::User), received_at: now, reply: 901 };
        match is_turn {
            true => {
                (0..commands).for_each(|_| assert!(inbox.push(query()).is_ok()));
                shard.turn(&inbox, now, out);
            }
            false => (0..commands).for_each(|_| {
                shard.take(query(), now, out);
                shard.note_taken(1);
            }),
        }
        let there = shard.users().iter().map(|user| user.orders().len()).sum::<usize>();
        assert_eq!(orders - there, expected * PIECE, "{commands} commands, in a turn: {is_turn}");
        world.check().expect("all invariants, and a replay without departures has the same digest");
        cases += 1;
    }
    println!("rows that leave between commands: {cases} cases");
}

/// While ended rows fill the memory for them, placements are refused and everything else goes on; when rows leave, they
/// are taken again.
#[test]
fn a_full_memory_of_ended_rows_refuses_placements_and_nothing_else() {
    let mut cases = 0;
    for (bytes_max, line) in
        [(4_000, "buy Y 5 limit 0.30"), (40_000, "buy Y 5 limit 0.42"), (9_000, "buy Y 5 limit 0.50 id=k")]
    {
        let mut world = World::of("");
        for line in ["plan pro", "tier pro", "balance 100000", "book Y bids 0.40x900000 asks 0.42x900000"] {
            world.act(line);
        }
        assert!(world.act("buy Y 5 limit 0.30").starts_with("PENDING"));
        assert!(world.act("buy Y 6 limit 0.30").starts_with("PENDING"));
        let bound = Arc::new(EndedBound::new(bytes_max, 1));
        world.shard().bound_ended(bound.clone());
        let (mut nth, mut was_pressed) = (2, 0);
        let refused = loop {
            nth += 1;
            was_pressed += usize::from(bound.is_pressed());
            let named = if line.contains("id=") { format!("{line}{nth}") } else { line.to_owned() };
            let answer = world.act(&named);
            if answer == "EndedFull" {
                break answer;
            }
            world.act(&format!("cancel #{nth}"));
            assert!(nth < 1_000, "{answer}");
        };
        let used = world.users().ended_rows();
        assert_eq!((refused.as_str(), used.orders, bound.refused()), ("EndedFull", nth - 3, 1));
        assert!(bound.is_full() && was_pressed > 0 && bound.bytes() == used.bytes() && used.bytes() >= bytes_max);
        let records = world.out.records.len();
        for (line, expected) in [
            (line, "EndedFull"),
            ("batch buy Y 5 limit 0.30 | buy Y 5 limit 0.30", "EndedFull"),
            ("sell Y 5 limit 0.41", "EndedFull"),
        ] {
            assert_eq!(world.act(line), expected, "{line}");
            cases += 1;
        }
        assert_eq!(world.out.records.len(), records, "a refusal leaves nothing");
        for (line, expected) in [
            ("cancel #1", "CANCELLED UserCancelled 0/5"),
            ("beat a 1000", "lapses in 2000 ms"),
            ("order #2", "PENDING 0/6"),
        ] {
            assert!(world.act(line).starts_with(expected), "{line}");
            cases += 1;
        }
        let mut copy = replayed(&world);
        let leaving = copy.leaving(Timestamp(u64::MAX), usize::MAX);
        let departures = Arc::new(Departures { upto: 77, pieces: pieces(&mut copy, &leaving) });
        let now = world.now;
        let (shard, inbox, out) = world.parts();
        let depart = Command::Depart(departures);
        shard.take(Envelope { owner: MARKETS, command: depart, received_at: now, reply: 900 }, now, out);
        while shard.has_work() {
            shard.turn(inbox, now, out);
        }
        out.answers.clear();
        assert!(!bound.is_full() && !bound.is_pressed(), "{} of {bytes_max}", bound.bytes());
        assert!(world.act("buy Y 7 limit 0.30").starts_with("PENDING"), "taken again");
        assert_eq!(bound.refused(), 4);
        world.check().expect("all invariants, counts of rows among them");
        cases += 2;
    }
    println!("a full memory of ended rows: {cases} cases");
}

/// What is declared about an address is one record about no user; it needs ample room, and the newest format.
#[test]
fn a_declared_address_is_journaled() {
    let mut world = World::of("");
    world.act("balance 100");
    world.make_user();
    let (before, records) = (digest::digest(&Markets::default(), &[world.users()]), world.out.records.len());
    let (now, address) = (world.now, [7; 20]);
    let declared =
        DeclaredAddress { kind: AddressKind::Deposit, owner: Some([8; 20]), exchange: true, neg_risk: false };
    let rooms = [Room::None, Room::ReserveOnly, Room::Ample];
    for room in rooms {
        let (shard, _, out) = world.parts();
        out.room = room;
        let command = Command::DeclareAddress { address, declared };
        shard.take(Envelope { owner: MARKETS, command, received_at: now, reply: 903 }, now, out);
        let (_, answer) = out.answers.pop().expect("an answer");
        match room {
            Room::Ample => assert!(matches!(answer, Answer::Done), "{answer:?}"),
            _ => assert!(matches!(answer, Answer::Refused(Reject::NoRoom)), "{answer:?}"),
        }
        assert_eq!(out.records.len() - records, usize::from(room == Room::Ample));
    }
    let (owner, payload) = world.out.records.last().expect("a record");
    let facts: Vec<MarketMutation> = codec::decode(codec::VERSION, payload)
        .expect("our own version")
        .collect::<Result<_, _>>()
        .expect("our own bytes");
    assert_eq!(*owner, MARKETS);
    assert_eq!(facts, [MarketMutation::AddressDeclared(fact::AddressDeclared { address, declared, at: now })]);
    assert_eq!(digest::digest(&Markets::default(), &[world.users()]), before);
    println!("declared addresses that are journaled: {} cases", rooms.len());
}

/// That history is cut is one record about no user, which changes nothing in the shard; the reserve is enough for it.
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
    let (mut cases, mut taken) = (0, 0);
    for (room, day) in [(Room::None, 3), (Room::ReserveOnly, 20_783), (Room::Ample, 20_784)] {
        let (shard, _, out) = world.parts();
        out.room = room;
        let command = Command::CutHistory { day: UtcDay(day) };
        shard.take(Envelope { owner: MARKETS, command, received_at: now, reply: 902 }, now, out);
        let (_, answer) = out.answers.pop().expect("an answer");
        match room {
            Room::None => assert!(matches!(answer, Answer::Refused(Reject::NoRoom)), "{answer:?}"),
            Room::ReserveOnly | Room::Ample => assert!(matches!(answer, Answer::Done), "{answer:?}"),
        }
        taken += usize::from(room != Room::None);
        assert_eq!(out.records.len() - records, taken);
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
