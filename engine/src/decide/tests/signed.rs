//! Fields of the newest format of facts: the hash of a signed order, and the recording's time of a fill.

use super::world::World;
use crate::command::{Answer, Command, Query};
use crate::format::Formats;
use crate::id::OrderId;
use crate::mutation::Mutation;
use crate::rehearsal::{Class, Diagnosis, Finding, Rule};
use crate::reject::Reject;
use crate::time::Timestamp;

fn sent(world: &mut World, words: &str) -> Result<OrderId, Reject> {
    let words: Vec<&str> = words.split(' ').collect();
    let placement = world.placement(words[0], &words[1..]);
    match world.ask(Command::Place(Box::new(placement)), 0) {
        Answer::Order(view) => Ok(view.order.id),
        Answer::Refused(reject) => Err(reject),
        other => panic!("{words:?}: {other:?}"),
    }
}

fn placed(world: &mut World, words: &str) -> OrderId {
    sent(world, words).unwrap_or_else(|reject| panic!("{words}: {reject:?}"))
}

fn found(world: &mut World, hashes: &[[u8; 32]]) -> Vec<Option<OrderId>> {
    match world.ask(Command::Query(Query::SignedOrders(hashes.to_vec())), 0) {
        Answer::SignedOrders(found) => found,
        other => panic!("{other:?}"),
    }
}

fn hashes(world: &mut World, orders: &[OrderId]) -> Vec<Option<[u8; 32]>> {
    match world.ask(Command::Query(Query::OrderHashes(orders.to_vec())), 0) {
        Answer::OrderHashes(hashes) => hashes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_signed_order_is_found_by_its_hash_also_after_a_restart() {
    let mut world = World::of("");
    world.act("balance 10000");
    world.make_user();
    let one = placed(&mut world, "buy Y 10 limit 0.30 signed=7");
    let plain = placed(&mut world, "buy Y 10 limit 0.30");
    // The hash is in use: the order has no other id than its number.
    let again = placed(&mut world, "buy Y 10 limit 0.31 signed=7");
    let other = placed(&mut world, "buy Y 10 limit 0.32 signed=8");
    for restarts in [false, true] {
        if restarts {
            world.restart();
        }
        assert_eq!(found(&mut world, &[[7; 32], [9; 32], [8; 32]]), [Some(one), None, Some(other)]);
        let shown = hashes(&mut world, &[other, again, plain, one, OrderId(1)]);
        assert_eq!(shown, [Some([8; 32]), None, None, Some([7; 32]), None]);
    }
    // After the order's end its hash still belongs to it.
    world.ask(Command::Cancel { order: one }, 0);
    placed(&mut world, "buy Y 10 limit 0.30 signed=7");
    assert_eq!(found(&mut world, &[[7; 32]]), [Some(one)]);
    world.check().expect("all invariants");
}

/// When its client order id has ended, a signed order that is sent again under it is refused: the order of that hash has
/// the id. Under another id, or with an implicit one that has ended, the same signature is another order without a hash.
#[test]
fn a_signed_order_under_its_own_id_places_no_second_order() {
    let mut cases = 0;
    let (in_body, in_header) = (Some(Reject::DuplicateClientOrderId), Some(Reject::IdempotencyKeyReuse));
    // (words of the first request, words of the later one, its refusal)
    let rows = [
        ("id=a", "id=a", in_body),
        ("id=a", "id=a body=2", in_body),
        ("id=a", "id=a header", in_header),
        ("id=a header", "id=a header", in_header),
        ("id=a", "id=b", None),
        ("id=salt implicit", "id=a", None),
        ("id=salt implicit", "id=salt implicit", None),
    ];
    for (first, later, refused) in rows {
        for between in ["", "cycle", "restart"] {
            let name = format!("{first}, then {later}, {between}");
            let mut world = World::of("");
            world.act("balance 10000");
            world.make_user();
            let line = format!("buy Y 10 limit 0.30 signed=7 {first}");
            let one = placed(&mut world, &line);
            assert_eq!(placed(&mut world, &line), one, "a repeat");
            world.act("wait 73h");
            match between {
                "restart" => drop(world.restart()),
                "cycle" => drop(world.act("cycle")),
                _ => {}
            }
            let again = sent(&mut world, &format!("buy Y 10 limit 0.30 signed=7 {later}"));
            assert_eq!(again.err(), refused, "{name}");
            if let Ok(again) = again {
                assert_ne!(again, one, "{name}");
                assert_eq!(hashes(&mut world, &[one, again]), [Some([7; 32]), None], "{name}");
            }
            assert_eq!(found(&mut world, &[[7; 32]]), [Some(one)], "{name}");
            // The id itself is free for another order.
            let other = placed(&mut world, "buy Y 10 limit 0.30 signed=8 id=a");
            assert_ne!(other, one, "{name}");
            world.check().expect("all invariants");
            cases += 1;
        }
    }
    println!("hashes: {cases} cases");
}

/// A placement that refuses a known hash: no second order is placed by one signature, under any id, also by a batch and
/// after the order's end. A refused order leaves no hash.
#[test]
fn a_known_hash_is_refused_if_the_placement_says_so() {
    let mut cases = 0;
    for between in ["", "cancel", "restart", "wait 73h"] {
        let mut world = World::of("");
        world.act("balance 10000");
        world.make_user();
        let refused = sent(&mut world, "buy ? 10 limit 0.30 signed=7 once");
        assert_eq!(refused, Err(Reject::MarketNotFound));
        let one = placed(&mut world, "buy Y 10 limit 0.30 signed=7 once");
        match between {
            "cancel" => drop(world.ask(Command::Cancel { order: one }, 0)),
            "restart" => drop(world.restart()),
            other => drop(world.act(other)),
        }
        for words in ["", " id=a", " invalid"] {
            let again = sent(&mut world, &format!("buy Y 10 limit 0.31 signed=7 once{words}"));
            assert_eq!(again, Err(Reject::OrderHashKnown), "{between}{words}");
            cases += 1;
        }
        let other = placed(&mut world, "buy Y 10 limit 0.30 signed=8 once");
        assert_eq!(found(&mut world, &[[7; 32], [8; 32]]), [Some(one), Some(other)]);
        // Without the word the hash is ignored, as ever.
        placed(&mut world, "buy Y 10 limit 0.30 signed=7");
        world.check().expect("all invariants");
        cases += 1;
    }
    println!("hashes that are refused: {cases} cases");
}

/// What a rehearsal found is one record, which changes nothing; it needs ample room and the newest format.
#[test]
fn findings_are_journaled_unchanged() {
    let mut world = World::of("");
    world.act("key issue a");
    let key = world.the_user().keys[0].id;
    let finding = |rule, class, count, order| Finding { rule, class, diagnosis: Diagnosis::OtherChain, count, order };
    let findings =
        vec![finding(Rule::Orders, Class::Refused, 3, Some(OrderId(9))), finding(Rule::S03, Class::Refused, 2, None)];
    let mut cases = 0;
    for (formats, room, noted) in
        [(Formats::Newest, "none", false), (Formats::Newest, "ample", true), (Formats::Previous, "ample", false)]
    {
        let mut world = World::of("");
        world.rules.formats = formats;
        world.act("key issue a");
        world.act(&format!("room {room}"));
        let (records, now) = (world.all_facts().len(), world.now);
        let answer = world.ask(Command::NoteStrict { key, findings: findings.clone() }, 0);
        assert!(matches!(answer, Answer::Done), "{answer:?}");
        let facts = world.all_facts().split_off(records);
        let expected = findings.iter().map(|&Finding { rule, class, diagnosis, count, order }| {
            Mutation::StrictFound(crate::fact::StrictFound { key, rule, class, diagnosis, count, order, at: now })
        });
        assert_eq!(facts, if noted { expected.collect() } else { Vec::new() }, "{formats:?} {room}");
        world.restart();
        world.check().expect("a replay gives the same state");
        cases += 1;
    }
    let unknown = world.ask(Command::NoteStrict { key: crate::id::KeyId(7), findings }, 0);
    assert!(matches!(unknown, Answer::Refused(Reject::KeyNotFound)), "{unknown:?}");
    println!("findings: {} cases", cases + 1);
}

#[test]
fn a_fill_has_the_time_of_the_recording_that_drives_the_clock() {
    let mut cases = 0;
    for (formats, recording) in [
        (Formats::Newest, None),
        (Formats::Newest, Some(Timestamp(5_000_000))),
        (Formats::Previous, Some(Timestamp(5_000_000))),
    ] {
        let mut world = World::of("");
        world.rules.formats = formats;
        if let Some(at) = recording {
            world.writer.recording(at);
        }
        world.act("book Y asks 0.42x100");
        world.make_user();
        let order = placed(&mut world, "buy Y 10 market 0.50 signed=7");
        let expected = recording.filter(|_| formats.is_newest());
        let user = world.the_user();
        let fills = user.fills_of(user.order(order).expect("just placed"));
        assert_eq!(fills.iter().map(|fill| fill.venue_at()).collect::<Vec<_>>(), [expected]);
        let facts = world.all_facts();
        let in_facts = facts.iter().find_map(|fact| match fact {
            Mutation::OrderFilled(filled) => Some(filled.venue_at),
            _ => None,
        });
        assert_eq!(in_facts, Some(expected), "{formats:?}");
        assert_eq!(found(&mut world, &[[7; 32]]), [formats.is_newest().then_some(order)], "{formats:?}");
        world.restart();
        world.check().expect("a replay gives the same state");
        cases += 1;
    }
    println!("recordings and formats: {cases} cases");
}
