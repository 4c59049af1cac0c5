//! Commands that need rows which left memory: every answer and every record is the same as with all rows in memory, and
//! the commands of a user keep their order while one of them is looked up.

use super::property::{Dice, step};
use super::store::{Fault, Store};
use super::world::World;
use crate::command::{Answer, Command, Envelope, Wallets};
use crate::departed::Leaving;
use crate::id::{MarketId, OrderId, UserId, WalletId};
use crate::look_up::LookUp;
use crate::rules::WAIT_MAX_US;
use crate::time::{SECOND, Timestamp};
use crate::user::WalletKind;

const SEEDS: u64 = 30;
const STEPS: usize = 900;

/// An order whose id or hash others have, too.
fn named(dice: &mut Dice) -> String {
    let mut line = if dice.roll(2) == 0 {
        // Of one size, so that positions end.
        dice.one_of(&["buy Y2 10 market 0.60 ", "sell Y2 10 market 0.20 "]).to_owned()
    } else {
        let side = dice.one_of(&["buy", "buy", "buy", "sell"]);
        let terms = dice.one_of(&["market 0.70", "limit 0.70 fak", "limit 0.20 fok", "limit 0.30", "limit 0.50"]);
        format!("{side} {} {} {terms} ", dice.one_of(&["Y", "N", "Y1"]), 5 + dice.roll(20))
    };
    if dice.roll(5) > 0 {
        line += &format!("id=k{} body={} ", dice.roll(25), dice.roll(2));
        line += dice.one_of(&["", "header ", "implicit ", "implicit "]);
    }
    if dice.roll(3) == 0 {
        line += &format!("signed={} ", dice.roll(25));
    }
    line + "pro"
}

/// What may happen: a line of the scenario language, or a command that it does not have.
enum Act {
    Line(String),
    Cancels(Vec<u64>),
}

fn act(dice: &mut Dice) -> Act {
    Act::Line(match dice.roll(100) {
        0..40 => return Act::Line(step(dice)),
        40..62 => named(dice),
        62..68 => {
            let entries: Vec<String> = (0..1 + dice.roll(5)).map(|_| named(dice)).collect();
            format!("batch {}", entries.join(" | "))
        }
        68..78 => format!("cancel #{}", 1 + dice.roll(400)),
        78..84 => return Act::Cancels((0..dice.roll(12)).map(|_| dice.roll(2_000)).collect()),
        // Some orders take what is there and rest; later they are filled again.
        84..88 => format!("book {} bids 0.40x90 asks 0.45x9 0.60x90", dice.one_of(&["Y", "N", "Y1"])),
        88..92 => "book Y2 bids 0.40x9000 asks 0.45x9000".to_owned(),
        92..96 => "cycle".to_owned(),
        96..98 => format!("wait {}m", 1 + dice.roll(25)),
        98 => format!("wait {}h", 1 + dice.roll(40)),
        _ => "user 1".to_owned(),
    })
}

fn run(world: &mut World, act: &Act) {
    world.begin_command();
    match act {
        Act::Line(line) => {
            let got = world.act(line);
            assert!(!got.starts_with("error"), "{line}: {got}");
        }
        Act::Cancels(numbers) => {
            world.make_user();
            // Among them keys, wallets, trades and numbers that were never given; and those of another user.
            let prefixes: Vec<UserId> = world.the_user().prefixes().collect();
            let owner = |number: u64| match number.is_multiple_of(17) {
                true => UserId(9),
                false => prefixes[number as usize % prefixes.len()],
            };
            let orders = numbers.iter().map(|number| OrderId(owner(*number).object(*number as u32))).collect();
            world.ask(Command::CancelOrders { orders }, 0);
        }
    }
}

/// What twins of a day did.
#[derive(Default)]
struct Ran {
    commands: usize,
    look_ups: usize,
    again: usize,
    found: usize,
    replays: usize,
}

/// One day twice: with all rows in memory, and with some of them gone.
fn day(seed: u64, fault: Option<Fault>) -> Result<Ran, String> {
    let (mut dice, mut replays) = (Dice(seed), 0);
    let [mut whole, mut hot] = std::array::from_fn(|_| {
        let mut world = World::of("market 0 ");
        for line in [
            "market 0 weather 0.01",
            "market 1 crypto 0.01",
            "market 2 sports 0.01",
            "rule free_daily_orders 100000",
            "balance 1000000",
        ] {
            world.act(line);
        }
        if seed % 2 == 1 {
            world.act("rule numbers_per_prefix 90");
        }
        world.answered = Some(Vec::new());
        world
    });
    hot.store = Some(Store::new(seed + 1, fault));
    for at in 0..STEPS {
        let act = act(&mut dice);
        run(&mut whole, &act);
        run(&mut hot, &act);
        let (one, other) = (whole.answered.take().unwrap_or_default(), hot.answered.take().unwrap_or_default());
        let what = match &act {
            Act::Line(line) => line.clone(),
            Act::Cancels(numbers) => format!("cancels {numbers:?}"),
        };
        if one != other {
            return Err(format!("seed {seed}, step {at}: {what}\n  whole {one:?}\n  hot   {other:?}"));
        }
        if whole.out.records != hot.out.records || whole.out.notices != hot.out.notices {
            return Err(format!("seed {seed}, step {at}: {what}: the same records and notices"));
        }
        if dice.roll(12) == 0 {
            hot.leave();
        }
        if at % 300 == 299 {
            whole.check()?;
            hot.check()?;
        }
        replays += one.iter().filter(|answer| answer.contains("is_replay: true")).count();
        (whole.answered, hot.answered) = (Some(Vec::new()), Some(Vec::new()));
    }
    let store = hot.store.as_ref().expect("it has one");
    Ok(Ran { commands: STEPS, look_ups: store.look_ups, again: store.again, found: store.found, replays })
}

#[test]
fn every_answer_is_the_same_wherever_rows_are() {
    let mut sum = Ran::default();
    for seed in 1..=SEEDS {
        let ran = day(seed, None).unwrap_or_else(|difference| panic!("{difference}"));
        sum.commands += ran.commands;
        sum.look_ups += ran.look_ups;
        sum.again += ran.again;
        sum.found += ran.found;
        sum.replays += ran.replays;
    }
    let Ran { commands, look_ups, again, found, replays } = sum;
    println!(
        "twins: {commands} commands, {look_ups} look-ups, {again} asked again, {found} rows found, {replays} replays"
    );
    assert!(look_ups > 1_000 && again > 100 && found > 1_000, "{look_ups}, {again}, {found}");
}

/// The comparison finds a store that loses or mixes up rows.
#[test]
fn planted_faults_are_found() {
    let faults = [
        Fault::Requests,
        Fault::Positions,
        Fault::Orders,
        Fault::Hashes,
        Fault::Fills,
        Fault::OldestRequest,
        Fault::Filter,
    ];
    for fault in faults {
        let found = (1..=SEEDS).find(|seed| day(*seed, Some(fault)).is_err());
        println!("{fault:?}: found by day {found:?}");
        assert!(found.is_some(), "{fault:?}");
    }
    println!("planted faults: {} cases", faults.len());
}

/// A world of two users, each with a request `old` that has left memory, and an open order.
fn parted() -> World {
    let mut world = World::of("");
    world.act("balance 10000");
    for user in [2, 1] {
        for line in
            [&format!("user {user}"), "buy Y 10 limit 0.30 id=old", "cancel market 0", "buy Y 10 limit 0.20 id=open"]
        {
            world.act(line);
        }
    }
    world.store = Some(Store::exact());
    for user in [1, 2] {
        let gone = world.users().get(UserId(user)).expect("a user").orders().iter().map(|order| order.id).next();
        world.leave_these(&Leaving { user: UserId(user), orders: gone.into_iter().collect(), positions: Vec::new() });
    }
    world
}

/// A shard stepped by hand.
struct Steps {
    world: World,
    look_ups: Vec<(u64, LookUp)>,
}

impl Steps {
    fn new() -> Steps {
        Steps { world: parted(), look_ups: Vec::new() }
    }

    fn send(&mut self, reply: u64, user: u64, command: Command, received_at: Timestamp) {
        let now = self.world.now;
        let (shard, _, out) = self.world.parts();
        shard.take(Envelope { owner: UserId(user), command, received_at, reply }, now, out);
    }

    fn turn(&mut self) {
        let now = self.world.now;
        let (shard, inbox, out) = self.world.parts();
        while shard.turn(inbox, now, out) {}
    }

    fn place(&self, line: &str) -> Command {
        let words: Vec<&str> = line.split(' ').collect();
        Command::Place(Box::new(self.world.placement(words[0], &words[1..])))
    }

    /// New answers as `reply: what`; look-ups are kept.
    fn answers(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        for (reply, answer) in std::mem::take(&mut self.world.out.answers) {
            let text = match answer {
                Answer::LookUp(look_up) => {
                    self.look_ups.push((reply, *look_up));
                    "looks up".to_owned()
                }
                Answer::Order(view) if view.is_replay => "replay".to_owned(),
                Answer::Order(_) => "order".to_owned(),
                Answer::Refused(reject) => format!("{reject:?}"),
                Answer::Cancelled(swept) => format!("cancelled {}", swept.cancelled.len()),
                Answer::Batch(entries) => format!("batch {}", entries.len()),
                Answer::Emptied(_) => "emptied".to_owned(),
                Answer::Done => "done".to_owned(),
                other => panic!("{other:?}"),
            };
            texts.push(format!("{reply}: {text}"));
        }
        texts
    }

    /// The oldest look-up comes back, as the same reply.
    fn come_back(&mut self) {
        let (reply, look_up) = self.look_ups.remove(0);
        let Envelope { owner, command, received_at, .. } = self.world.store.as_mut().expect("a store").look_up(look_up);
        self.send(reply, owner.0, command, received_at);
    }

    /// The oldest look-up ends without an outcome.
    fn fail(&mut self) {
        let (_, look_up) = self.look_ups.remove(0);
        let now = self.world.now;
        self.send(99, look_up.owner().0, look_up.end(), now);
    }
}

const OLD: &str = "buy Y 10 limit 0.30 id=old";
const NEW: &str = "buy Y 10 limit 0.30 id=new";

#[test]
fn commands_of_a_user_keep_their_order_while_one_is_looked_up() {
    let mut cases = 0;
    let open =
        |steps: &Steps| steps.world.users().get(UserId(1)).expect("a user").open_orders().next().expect("open").id;
    let wallet = |steps: &Steps| {
        steps.world.users().get(UserId(1)).expect("a user").wallet_of(WalletKind::Main).expect("one").id
    };
    type Later = fn(&Steps, OrderId, WalletId) -> Command;
    // What comes later, and its answer.
    let laters: [(Later, &str); 8] = [
        (|steps, _, _| steps.place(NEW), "order"),
        (
            |steps, _, _| Command::PlaceBatch(vec![steps.world.placement("buy", &["Y", "10", "limit", "0.30"])]),
            "batch 1",
        ),
        (|_, open, _| Command::Cancel { order: open }, "order"),
        (|_, open, _| Command::CancelOrders { orders: vec![open] }, "cancelled 1"),
        (|_, _, _| Command::CancelAll { wallets: Wallets::Api }, "cancelled 1"),
        (
            |_, _, _| Command::CancelMarket { market: Some(MarketId(0)), instrument: None, wallets: Wallets::Api },
            "cancelled 1",
        ),
        (|_, _, wallet| Command::ArchiveWallet { wallet }, "WrongWalletKind"),
        (|_, _, _| Command::ResetApiWallet { by: None }, "ResetNeedsPlan"),
    ];
    for (number, (later, answer)) in laters.into_iter().enumerate() {
        for outcome in ["found", "failed"] {
            let mut steps = Steps::new();
            let now = steps.world.now;
            let (order, wallet) = (open(&steps), wallet(&steps));
            steps.send(1, 1, steps.place(OLD), now);
            assert_eq!(steps.answers(), ["1: looks up"]);
            steps.send(2, 1, later(&steps, order, wallet), now);
            steps.send(3, 1, steps.place("buy Y 11 limit 0.30"), now);
            // Neither a query nor another user waits.
            steps.send(4, 1, Command::EndBeats, now);
            steps.send(5, 2, steps.place(NEW), now);
            steps.turn();
            assert_eq!(steps.answers(), ["4: done", "5: order"], "{number}, {outcome}");
            match outcome {
                "found" => {
                    steps.come_back();
                    assert_eq!(steps.answers(), ["1: replay"], "{number}");
                }
                _ => {
                    steps.fail();
                    assert_eq!(steps.answers(), ["99: done"], "{number}");
                }
            }
            steps.turn();
            assert_eq!(steps.answers(), [format!("2: {answer}"), "3: order".to_owned()], "{number}, {outcome}");
            assert!(!steps.world.shard().holds_up());
            steps.world.check().expect("all invariants");
            cases += 1;
        }
    }
    println!("commands after a look-up: {cases} cases");
}

/// The line moves up to the next command that is looked up.
#[test]
fn look_ups_of_a_user_follow_each_other() {
    let mut steps = Steps::new();
    let now = steps.world.now;
    for (reply, line) in
        [(1, OLD), (2, NEW), (3, "buy Y 10 limit 0.30 id=old body=2"), (4, "buy Y 10 limit 0.30 id=last")]
    {
        // Only an implicit id may repeat one that is looked up.
        let line = if reply == 1 { format!("{line} implicit") } else { line.to_owned() };
        steps.send(reply, 1, steps.place(&line), now);
    }
    steps.send(5, 2, steps.place(OLD), now);
    assert_eq!(steps.answers(), ["1: looks up", "5: looks up"]);
    steps.come_back();
    steps.turn();
    assert_eq!(steps.answers(), ["1: replay", "2: order", "3: looks up"]);
    // The first is that of the other user.
    steps.come_back();
    steps.turn();
    assert_eq!(steps.answers(), ["5: replay"]);
    steps.come_back();
    steps.turn();
    assert_eq!(steps.answers(), ["3: DuplicateClientOrderId", "4: order"]);
    steps.world.check().expect("all invariants");
}

#[test]
fn an_id_that_is_looked_up_is_still_running() {
    let mut cases = 0;
    for (first, second, answer) in [
        (OLD, OLD, Some("StillRunning")),
        (OLD, "buy Y 12 limit 0.30 id=old body=2", Some("StillRunning")),
        ("buy Y 10 limit 0.30 id=old implicit", OLD, None),
        (OLD, "buy Y 10 limit 0.30 id=old implicit", None),
        (OLD, "buy Y 10 limit 0.30 id=open", None),
    ] {
        for in_batch in [false, true] {
            let mut steps = Steps::new();
            let now = steps.world.now;
            steps.send(1, 1, steps.place(first), now);
            assert_eq!(steps.answers(), ["1: looks up"]);
            let words: Vec<&str> = second.split(' ').collect();
            let placement = steps.world.placement(words[0], &words[1..]);
            let command =
                if in_batch { Command::PlaceBatch(vec![placement]) } else { Command::Place(Box::new(placement)) };
            steps.send(2, 1, command, now);
            steps.turn();
            let expected: Vec<String> = answer.iter().map(|answer| format!("2: {answer}")).collect();
            assert_eq!(steps.answers(), expected, "{first}, {second}");
            cases += 1;
        }
    }
    println!("ids that are looked up: {cases} cases");
}

#[test]
fn a_look_up_that_takes_too_long_is_over() {
    let mut cases = 0;
    for (waited, is_over) in [(0, false), (WAIT_MAX_US, false), (WAIT_MAX_US + 1, true), (10 * WAIT_MAX_US, true)] {
        for moved_by in ["a turn", "a command"] {
            let mut steps = Steps::new();
            let now = steps.world.now;
            steps.send(1, 1, steps.place(OLD), now);
            // Received a second later.
            steps.world.now = now.plus(SECOND);
            steps.send(2, 1, steps.place(NEW), now.plus(SECOND));
            assert_eq!(steps.answers(), ["1: looks up"]);
            steps.world.now = now.plus(waited.max(SECOND));
            match moved_by {
                "a turn" => steps.turn(),
                _ => steps.send(3, 2, Command::Cancel { order: OrderId(7) }, steps.world.now),
            }
            let second = if waited > 9 * WAIT_MAX_US { "2: WaitedTooLong" } else { "2: order" };
            let mut expected: Vec<&str> = Vec::new();
            if moved_by == "a command" {
                expected.push("3: OrderNotFound");
                assert_eq!(steps.answers(), expected, "{waited}");
                expected.clear();
                steps.turn();
            }
            if is_over {
                expected.push(second);
            }
            assert_eq!(steps.answers(), expected, "{waited}, {moved_by}");
            steps.come_back();
            steps.turn();
            let expected = if is_over { vec!["1: WaitedTooLong"] } else { vec!["1: replay", "2: order"] };
            assert_eq!(steps.answers(), expected, "{waited}, {moved_by}");
            assert!(!steps.world.shard().holds_up());
            steps.world.check().expect("all invariants");
            cases += 1;
        }
    }
    println!("overdue look-ups: {cases} cases");
}

/// A look-up that has ended changes nothing any more, however it comes back.
#[test]
fn a_look_up_ends_once() {
    let mut steps = Steps::new();
    let now = steps.world.now;
    steps.send(1, 1, steps.place(OLD), now);
    steps.answers();
    let look_up = steps.look_ups[0].clone();
    steps.fail();
    assert_eq!(steps.answers(), ["99: done"]);
    // The next one has another ticket.
    steps.send(2, 1, steps.place(OLD), now);
    assert_eq!(steps.answers(), ["2: looks up"]);
    steps.look_ups.push(look_up.clone());
    steps.look_ups.swap(0, 1);
    steps.come_back();
    assert_eq!(steps.answers(), ["1: WaitedTooLong"], "its command was not decided");
    steps.send(3, 1, look_up.1.end(), now);
    assert_eq!(steps.answers(), ["3: done"]);
    steps.come_back();
    steps.turn();
    assert_eq!(steps.answers(), ["2: replay"], "the other look-up was still under way");
}

/// If more rows have left memory since the search, the shard asks again.
#[test]
fn a_search_that_is_too_old_is_repeated() {
    let mut steps = Steps::new();
    let now = steps.world.now;
    steps.world.act("cancel #4");
    steps.send(1, 1, steps.place("buy Y 10 limit 0.30 id=open"), now);
    assert_eq!(steps.answers(), ["1: replay"], "it is the newest, and in memory");
    let hidden = "buy Y 10 limit 0.30 id=never";
    steps.send(2, 1, steps.place(hidden), now);
    steps.turn();
    assert_eq!(steps.answers(), ["2: order"], "the filter knows it was never used");
    steps.send(3, 1, steps.place(OLD), now);
    assert_eq!(steps.answers(), ["3: looks up"]);
    let (reply, look_up) = steps.look_ups.remove(0);
    let found = steps.world.store.as_mut().expect("a store").look_up(look_up);
    let ended = steps.world.users().get(UserId(1)).expect("a user").orders().iter().find(|order| !order.is_open());
    let orders = vec![ended.expect("cancelled").id];
    steps.world.leave_these(&Leaving { user: UserId(1), orders, positions: Vec::new() });
    steps.send(reply, 1, found.command, now);
    assert_eq!(steps.answers(), ["3: looks up"], "again");
    steps.come_back();
    assert_eq!(steps.answers(), ["3: replay"]);
}

/// Look-ups under way are bounded.
#[test]
fn look_ups_are_bounded() {
    let mut steps = Steps::new();
    let users = 1_030_u64;
    for user in 3..=users {
        for line in [&format!("user {user}"), "buy Y 10 limit 0.30 id=old", "cancel market 0"] {
            steps.world.act(line);
        }
        let gone = steps.world.the_user().orders().iter().map(|order| order.id).collect();
        steps.world.leave_these(&Leaving { user: UserId(user), orders: gone, positions: Vec::new() });
    }
    let now = steps.world.now;
    for user in 1..=users {
        steps.send(user, user, steps.place(OLD), now);
    }
    let answers = steps.answers();
    assert_eq!(answers.iter().filter(|answer| answer.ends_with("looks up")).count(), 1_024);
    assert_eq!(answers.iter().filter(|answer| answer.ends_with("Busy")).count(), 6);
    for _ in 0..1_024 {
        steps.come_back();
    }
    steps.turn();
    assert!(steps.answers().iter().all(|answer| answer.ends_with("replay")));
}
