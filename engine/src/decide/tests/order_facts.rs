//! Order facts of many users take a bounded memory: the oldest ones of users with many are cut.

use super::world::World;
use crate::command::{Answer, Command, Query};
use crate::format::Formats;
use crate::market::Markets;
use crate::mutation::Mutation;
use crate::shard::digest;
use crate::view::FactPage;

const MAX: usize = 100;
const LEFT: usize = 16;
const USERS: u64 = 5;

/// A world with small bounds.
fn world() -> World {
    let mut world = World::of("");
    for line in [
        &format!("rule order_facts_max {MAX}"),
        &format!("rule order_facts_left {LEFT}"),
        "balance 1000000",
        "book Y bids 0.40x90000 asks 0.50x90000",
    ] {
        assert_eq!(world.act(line), "");
    }
    world
}

/// An order that rests and is cancelled: two order facts.
fn two_facts(world: &mut World, user: u64) {
    world.act(&format!("user {user}"));
    let placed = world.act("buy Y 10 limit 0.41");
    assert!(placed.starts_with("PENDING"), "{placed}");
    let number = world.orders.len();
    world.act(&format!("cancel #{number}"));
}

fn page(world: &mut World, after: u64) -> FactPage {
    let asked = Command::Query(Query::Facts { after, limit: 1_000 });
    match world.ask(asked, 0) {
        Answer::Facts(page) => page,
        other => panic!("a page: {other:?}"),
    }
}

fn kept(world: &World) -> Vec<usize> {
    world.users().iter().map(|user| user.order_facts_kept()).collect()
}

fn cuts(world: &World) -> usize {
    world.all_facts().iter().filter(|fact| matches!(fact, Mutation::OrderFactsCut(_))).count()
}

#[test]
fn order_facts_of_all_users_are_bounded() {
    let (mut world, mut cases) = (world(), 0);
    let mut most = 0;
    for turn in 0..400 {
        two_facts(&mut world, 1 + turn % USERS);
        let kept = kept(&world);
        let all: usize = kept.iter().sum();
        // Each user has fewer than twice what a cut leaves, or all of them are within the bound.
        let many = kept.iter().filter(|count| **count > 2 * LEFT).count();
        assert!(all <= MAX + 2 || many == 0, "{kept:?}");
        most = most.max(all);
        cases += 1;
    }
    assert!(cuts(&world) > 10 && most > MAX, "{} cuts", cuts(&world));
    // What is left is what streams get, with the gap before it.
    for user in 1..=USERS {
        world.act(&format!("user {user}"));
        let now = world.users().get(world.user).expect("there").order_facts_kept() as u64;
        let found = page(&mut world, 0);
        assert_eq!((found.newest, found.oldest), (160, 161 - now), "user {user}");
        assert!(found.facts.iter().map(|view| view.seq).eq(found.oldest..=found.newest));
        cases += 1;
    }
    let before = digest::digest(&Markets::default(), &[world.users()]);
    let kept_before = kept(&world);
    world.act("restart");
    assert_eq!((digest::digest(&Markets::default(), &[world.users()]), kept(&world)), (before, kept_before));
    // The count of all users survives the restart: the next facts are bounded as before.
    for turn in 0..50 {
        two_facts(&mut world, 1 + turn % USERS);
        assert!(kept(&world).iter().sum::<usize>() <= MAX.max(USERS as usize * 2 * LEFT) + 2);
        cases += 1;
    }
    println!("bounded order facts: {cases} cases");
}

/// Nothing is cut within the bound, of users with few facts, and while a process writes the previous formats.
#[test]
fn order_facts_are_not_cut_without_need() {
    let mut within = world();
    (0..MAX / 2).for_each(|_| two_facts(&mut within, 1));
    assert_eq!((cuts(&within), kept(&within).iter().sum::<usize>()), (0, MAX));
    two_facts(&mut within, 1);
    assert_eq!(cuts(&within), 1);
    assert!((LEFT..LEFT + 2).contains(&kept(&within)[0]), "{:?}", kept(&within));

    let mut few = world();
    (0..10 * 15).for_each(|turn| two_facts(&mut few, 1 + turn % 10));
    assert_eq!((cuts(&few), kept(&few).iter().sum::<usize>()), (0, 300));

    let mut previous = World::of("");
    previous.rules.formats = Formats::Previous;
    for line in [
        &format!("rule order_facts_max {MAX}"),
        &format!("rule order_facts_left {LEFT}"),
        "balance 1000000",
        "book Y bids 0.40x90000 asks 0.50x90000",
    ] {
        previous.act(line);
    }
    (0..MAX).for_each(|_| two_facts(&mut previous, 1));
    assert_eq!((cuts(&previous), kept(&previous)[0]), (0, 2 * MAX));
    println!("order facts that stay: {} cases", 3);
}
