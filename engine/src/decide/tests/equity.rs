//! Equity (engine/docs/account.md §5): the value of a wallet at each full hour, across resets, ends and starts; the
//! same by the minute while it is followed.

use super::show::text;
use super::store::Store;
use super::world::{START, World};
use crate::command::{Answer, Command, Query, Wallets};
use crate::time::Timestamp;
use crate::user::equity::EquityRow;

pub const SCENARIOS: &str = r#"
# a full hour: a changed wallet gets a point, an unchanged one gets none
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
cycle
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
equity                                       ->
wait 1h
turn
facts                                        -> OrderPlaced OrderFilled EquityNoted
equity                                       -> 1: 9960 + 39 of 10000
equity all                                   -> 1: 10960 + 39 of 11000
equity 1                                     -> 1: 1000 + 0 of 1000
wait 1h
turn
facts                                        -> OrderPlaced OrderFilled EquityNoted
// An unchanged value adds no point; another mark does.
wait 1h
book Y bids 0.48x1000 asks 0.50x1000
turn
facts                                        -> OrderPlaced OrderFilled EquityNoted EquityNoted
equity                                       -> 1: 9960 + 39 of 10000 | 2: 9960 + 39 of 10000 | 3: 9960 + 49 of 10000

# a point is made before changes after the hour
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
cycle
wait 1h
alive
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
facts                                        -> OrderPlaced OrderFilled
equity                                       -> 1: 10000 + 0 of 10000
wait 1h
alive
sell Y 100 market 0.01                       -> FILLED 100/100 @0.38 fee 0
facts                                        -> EquityNoted OrderPlaced OrderFilled
equity                                       -> 1: 10000 + 0 of 10000 | 2: 9960 + 39 of 10000
wait 1h
// A query is enough.
equity                                       -> 1: 10000 + 0 of 10000 | 2: 9960 + 39 of 10000 | 3: 9998 + 0 of 10000
wait 5h
turn
equity 2                                     -> 1: 10000 + 0 of 10000 | 2: 9960 + 39 of 10000 | 3: 9998 + 0 of 10000 | 4: 9998 + 0 of 10000 | 5: 9998 + 0 of 10000 | 6: 9998 + 0 of 10000 | 7: 9998 + 0 of 10000 | 8: 9998 + 0 of 10000

# a reset does not change the hours before it, nor does a better plan
market 0 geopolitics 0.01
cycle
wait 1h
grant pro                                    -> done
wait 1h
wallet reset api                             -> 2 Api 10000 of 10000 gen 2 after 0 orders 0 positions
wait 1h
equity                                       -> 1: 100 + 0 of 100 | 2: 100 + 0 of 10000 | 3: 10000 + 0 of 10000

# nor does a better plan change the hours before the first point
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
cycle
wait 1h
book Y bids 0.38x1000 asks 0.40x1000
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
wait 1h
grant pro                                    -> done
wait 1h
equity                                       -> 1: 100 + 0 of 100 | 2: 60 + 39 of 100 | 3: 60 + 39 of 10000

# hours before a wallet was opened are left out
plan pro
cycle
wait 2h
wallet open                                  -> 3 Sandbox 10000 of 10000 gen 1
equity 3                                     ->
wait 1h
equity 3                                     -> 3: 10000 + 0 of 10000
equity all                                   -> 1: 11000 + 0 of 11000 | 2: 11000 + 0 of 11000 | 3: 21000 + 0 of 21000
wallet archive 3                             -> 3 Sandbox 10000 of 10000 gen 1 archived after 0 orders 0 positions
wait 1h
equity 3                                     -> 3: 10000 + 0 of 10000 | 4: 10000 + 0 of 10000
equity all                                   -> 1: 11000 + 0 of 11000 | 2: 11000 + 0 of 11000 | 3: 11000 + 0 of 11000 | 4: 11000 + 0 of 11000

# without a mark a position counts at its cost; without room a point waits
plan pro
market 0 geopolitics 0.01
book Y asks 0.40x1000
cycle
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
room reserve
wait 1h
turn
facts                                        -> OrderPlaced OrderFilled
room ample
turn
equity                                       -> 1: 9960 + 40 of 10000

# hours that end without a process get the value of the end, once there are books
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
cycle
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
restart
wait 3h
turn
facts                                        -> OrderPlaced OrderFilled
equity                                       -> 1: 10000 + 0 of 10000 | 2: 10000 + 0 of 10000 | 3: 10000 + 0 of 10000
cycle
facts                                        -> EquityNoted
equity                                       -> 1: 9960 + 39 of 10000 | 2: 9960 + 39 of 10000 | 3: 9960 + 39 of 10000
restart
cycle
facts                                        ->

# the process ends during the points of an hour: users without one get it after the next start
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
cycle
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
user 2
buy Y 50 market 0.50                         -> FILLED 50/50 @0.4 fee 0
wait 1h
turn
facts                                        -> OrderPlaced OrderFilled EquityNoted EquityNoted
lose 1
restart
cycle
facts                                        -> EquityNoted
equity                                       -> 1: 9980 + 19.5 of 10000
user 1
equity                                       -> 1: 9960 + 39 of 10000
restart
cycle
facts                                        ->

# the same with some hours in between, in which other points are due
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
cycle
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
user 2
buy Y 50 market 0.50                         -> FILLED 50/50 @0.4 fee 0
wait 1h
turn
lose 1
restart
wait 2h
book Y bids 0.48x1000 asks 0.50x1000
cycle
facts                                        -> EquityNoted EquityNoted
equity                                       -> 1: 9980 + 24.5 of 10000 | 2: 9980 + 24.5 of 10000 | 3: 9980 + 24.5 of 10000
user 1
equity                                       -> 1: 9960 + 39 of 10000 | 2: 9960 + 49 of 10000 | 3: 9960 + 49 of 10000

# a change after the hour had its point before, or needed none: no point is made again
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
cycle
wait 1h
alive
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
restart
cycle
facts                                        ->
equity                                       -> 1: 10000 + 0 of 10000
wait 1h
resolve 0 Y
settle 0                                     -> paid 1 expired 0
facts                                        -> EquityNoted PositionSettled
restart
cycle
facts                                        ->
equity                                       -> 1: 10000 + 0 of 10000 | 2: 9960 + 100 of 10000
wait 1h
wallet reset api                             -> 2 Api 10000 of 10000 gen 2 after 0 orders 0 positions
facts                                        -> EquityNoted WalletReset
restart
cycle
facts                                        ->

# with only the reserve left, users whose money moves get points before; a query gets none
plan pro
market 0 geopolitics 0.01
market 1 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
book Y1 bids 0.38x1000 asks 0.40x1000
wallet open                                  -> 3 Sandbox 10000 of 10000 gen 1
cycle
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
buy Y1 100 market 0.50                       -> FILLED 100/100 @0.4 fee 0
buy Y 10 market 0.50 from=3                  -> FILLED 10/10 @0.4 fee 0
room reserve
wait 1h
equity 3                                     -> 1: 10000 + 0 of 10000
wallet archive 3                             -> 3 Sandbox 9996 of 10000 gen 1 archived after 0 orders 1 positions
facts                                        -> EquityNoted EquityNoted PositionReset WalletArchived
resolve 0 Y
settle 0                                     -> paid 1 expired 0
facts                                        -> PositionSettled
wait 1h
resolve 1 N
settle 1                                     -> paid 1 expired 0
facts                                        -> EquityNoted EquityNoted PositionSettled
room ample
turn
equity                                       -> 1: 9920 + 78 of 10000 | 2: 10020 + 0 of 10000
equity 3                                     -> 1: 9996 + 3.9 of 10000 | 2: 9996 + 0 of 10000
wait 1h
turn
equity                                       -> 1: 9920 + 78 of 10000 | 2: 10020 + 0 of 10000 | 3: 10020 + 0 of 10000

# by the minute: flat from the creation to the first fill, then a point a minute; nothing is journaled
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
cycle
minutes                                      ->
wait 150s
minutes                                      -> 16-17: 10000 + 0 of 10000
book Y bids 0.38x1000 asks 0.40x1000
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
minutes                                      -> 16-17: 10000 + 0 of 10000
wait 60s
turn
minutes                                      -> 16-17: 10000 + 0 of 10000 | 18: 9960 + 39 of 10000
wait 60s
turn
book Y bids 0.48x1000 asks 0.50x1000
wait 60s
turn
minutes                                      -> 16-17: 10000 + 0 of 10000 | 18-19: 9960 + 39 of 10000 | 20: 9960 + 49 of 10000
minutes all                                  -> 16-17: 11000 + 0 of 11000 | 18-19: 10960 + 39 of 11000 | 20: 10960 + 49 of 11000
minutes 1                                    -> 16-20: 1000 + 0 of 1000
minutes 7                                    -> WalletNotFound
// A command after the minute is not in its point.
wait 60s
book Y bids 0.48x1000 asks 0.50x1000
sell Y 100 market 0.01                       -> FILLED 100/100 @0.48 fee 0
wait 60s
facts                                        -> OrderPlaced OrderFilled
minutes                                      -> 16-17: 10000 + 0 of 10000 | 18-19: 9960 + 39 of 10000 | 20-21: 9960 + 49 of 10000 | 22: 10008 + 0 of 10000
// A day later the first session is too old, and another day later the wallet is no longer followed.
wait 23h
wait 58m
turn
minutes                                      -> 21: 9960 + 49 of 10000 | 22-1460: 10008 + 0 of 10000
wait 24h
turn
minutes                                      -> 1461-2900: 10008 + 0 of 10000

# a full hour is a minute too
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
cycle
wait 43m
book Y bids 0.38x1000 asks 0.40x1000
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
wait 60s
turn
wait 60s
turn
equity                                       -> 1: 9960 + 39 of 10000
minutes                                      -> 16-58: 10000 + 0 of 10000 | 59-60: 9960 + 39 of 10000

# a new process starts without minutes: the hours come before
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
cycle
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
wait 60s
turn
minutes                                      -> 16: 9960 + 39 of 10000
wait 44m
turn
wait 5m
turn
restart
minutes                                      -> 60: 9960 + 39 of 10000
wait 60s
turn
// Without a cycle there are no books.
minutes                                      -> 60: 9960 + 39 of 10000
cycle
minutes                                      -> 60: 9960 + 39 of 10000 | 66: 9960 + 39 of 10000
wait 60s
turn
minutes                                      -> 60: 9960 + 39 of 10000 | 66-67: 9960 + 39 of 10000

# a reset, another plan and a wallet opened meanwhile
market 0 geopolitics 0.01
cycle
wait 5m
grant pro                                    -> done
minutes                                      -> 16-20: 100 + 0 of 100
wait 60s
wallet reset api                             -> 2 Api 10000 of 10000 gen 2 after 0 orders 0 positions
wait 60s
minutes                                      -> 16-20: 100 + 0 of 100 | 21: 100 + 0 of 10000 | 22: 10000 + 0 of 10000
wallet open                                  -> 3 Sandbox 10000 of 10000 gen 1
minutes 3                                    ->
wait 60s
minutes 3                                    -> 23: 10000 + 0 of 10000
minutes all                                  -> 16-20: 1100 + 0 of 1100 | 21: 1100 + 0 of 11000 | 22: 11000 + 0 of 11000 | 23: 21000 + 0 of 21000
"#;

#[test]
fn followed_wallets_change_neither_log_nor_state() {
    let lines = [
        "plan pro",
        "market 0 geopolitics 0.01",
        "book Y bids 0.38x1000 asks 0.40x1000",
        "cycle",
        "buy Y 100 market 0.50",
        "wait 60s",
        "book Y bids 0.37x1000 asks 0.39x1000",
        "turn",
        "buy Y 10 limit 0.30",
        "wait 60s",
        "sell Y 50 market 0.01",
        "wait 1h",
        "turn",
        "wait 24h",
        "turn",
    ];
    let run = |asks: bool| {
        let mut world = World::of("market 0 geopolitics 0.01");
        let mut answers = 0;
        for line in lines {
            let got = world.act(line);
            assert!(!got.starts_with("error"), "{line}: {got}");
            if asks && line != "plan pro" {
                for words in ["minutes", "minutes all"] {
                    answers += usize::from(!world.act(words).is_empty());
                }
            }
        }
        world.check().expect("a replay gives the same state");
        (world.out.records, answers)
    };
    let ((with_queries, answers), (without, _)) = (run(true), run(false));
    println!("{} records, {answers} answers with minutes", with_queries.len());
    assert!(answers > 15);
    assert_eq!(with_queries, without);
}

/// A wallet without changes is not followed, however many positions of another wallet changed since.
#[test]
fn an_unchanged_wallet_is_recognised_beside_one_with_many_positions() {
    let mut cases = 0;
    for episodes in [0, 1_000, 1_001, 2_500] {
        let mut world = World::of("market 0 geopolitics 0.01");
        for line in [
            "plan pro",
            "market 0 geopolitics 0.01",
            "flag book_impact_depletion off",
            "book Y bids 0.38x1000 asks 0.40x1000",
            "cycle",
            "wallet open",
            "buy Y 10 market 0.50 from=3",
            "sell Y 10 market 0.01 from=3",
            "wait 45m",
            "turn",
            "book Y bids 0.38x1000 asks 0.40x1000",
        ] {
            let got = world.act(line);
            assert!(!got.starts_with("error"), "{line}: {got}");
        }
        for _ in 0..episodes {
            for line in ["buy Y 10 market 0.50 pro", "sell Y 10 market 0.01 pro"] {
                let got = world.act(line);
                assert!(got.starts_with("FILLED"), "{line}: {got}");
            }
        }
        for line in ["wait 120s", "restart", "cycle"] {
            world.act(line);
        }
        assert_eq!(world.act("minutes 3"), "60-62: 9999.8 + 0 of 10000", "{episodes} episodes");
        // The MAIN wallet never traded, so it is always unchanged.
        assert_eq!(world.act("minutes 1"), "16-62: 1000 + 0 of 1000");
        cases += 1;
    }
    println!("unchanged wallets: {cases} cases");
}

/// Rows that have left memory, and those after a page of positions, hide the moves of their own wallet only.
#[test]
fn a_wallet_is_unchanged_when_rows_of_another_one_have_left() {
    let (unchanged, unknown) = ("60-62: 9999.8 + 0 of 10000", "60: 9999.8 + 0 of 10000 | 62: 9999.6 + 0 of 10000");
    let mut cases = 0;
    // (trades after the full hour: the wallet, how many; whether all rows leave; minutes of wallet 3)
    for (trades, leave, expected) in [
        (&[][..], true, unchanged),
        (&[(2, 1)], true, unchanged),
        (&[(2, 30)], true, unchanged),
        (&[(3, 1)], true, unknown),
        (&[(2, 1), (3, 1), (2, 1)], true, unknown),
        (&[(3, 1), (2, 1_001)], false, unknown),
        (&[(3, 1), (2, 1_001)], true, unknown),
    ] {
        let mut world = World::of("market 0 geopolitics 0.01");
        for line in [
            "plan pro",
            "market 0 geopolitics 0.01",
            "flag book_impact_depletion off",
            "book Y bids 0.38x1000 asks 0.40x1000",
            "cycle",
            "wallet open",
            "buy Y 10 market 0.50 from=3",
            "sell Y 10 market 0.01 from=3",
            "buy Y 10 market 0.50 from=2",
            "sell Y 10 market 0.01 from=2",
            "wait 45m",
            "turn",
            "book Y bids 0.38x1000 asks 0.40x1000",
        ] {
            let got = world.act(line);
            assert!(!got.starts_with("error"), "{line}: {got}");
        }
        for (wallet, _) in trades.iter().flat_map(|(wallet, count)| (0..*count).map(move |nth| (wallet, nth))) {
            for order in ["buy Y 10 market 0.50", "sell Y 10 market 0.01"] {
                let line = format!("{order} pro from={wallet}");
                let got = world.act(&line);
                assert!(got.starts_with("FILLED"), "{line}: {got}");
            }
        }
        for line in ["wait 120s", "restart", "cycle"] {
            world.act(line);
        }
        if leave {
            world.store = Some(Store::exact());
            for leaving in world.users().leaving(Timestamp(u64::MAX), usize::MAX) {
                world.leave_these(&leaving);
            }
            assert_eq!((world.the_user().orders().len(), world.the_user().positions().len()), (0, 0), "all have left");
        }
        assert_eq!(world.act("minutes 3"), expected, "{trades:?}");
        assert_eq!(world.act("minutes 1"), "16-62: 1000 + 0 of 1000");
        world.check().expect("all invariants, and a replay without departures has the same digest");
        cases += 2;
    }
    println!("wallets whose rows have left: {cases} cases");
}

/// More wallets than one page of points, and one more than are followed.
#[test]
fn a_user_that_acts_between_two_pages_gets_its_point_before() {
    let mut world = World::of("market 0 geopolitics 0.01");
    for line in [
        "balance 10000",
        "market 0 geopolitics 0.01",
        "market 1 geopolitics 0.01",
        "book Y bids 0.38x9000000 asks 0.40x9000000",
        "book Y1 bids 0.38x9000000 asks 0.40x9000000",
        "cycle",
    ] {
        world.act(line);
    }
    let users = 512;
    for user in 1..=users {
        world.act(&format!("user {user}"));
        for token in ["Y", "N", "Y1", "N1"] {
            let got = world.act(&format!("buy {token} 10 market 0.90"));
            assert!(got.starts_with("FILLED"), "user {user}, {token}: {got}");
        }
        assert_eq!(world.act("minutes"), "");
    }
    let before = world.act("account");
    assert_eq!(before, "2 wallets 4 positions 4 fills 0 closed 0 won");
    world.act("wait 60s");
    for book in ["book Y bids 0.38x9000000 asks 0.40x9000000", "book Y1 bids 0.38x9000000 asks 0.40x9000000"] {
        world.act(book);
    }
    let now = world.now;
    let (shard, inbox, out) = world.parts();
    assert!(shard.turn(inbox, now, out), "there is another page");
    let sold = world.act("sell Y 10 market 0.01");
    assert!(sold.starts_with("FILLED"), "{sold}");
    let held = "9979.6 + 20 of 10000";
    let point = world.act("minutes");
    assert_eq!(point, format!("16: {held}"));
    world.act("user 1");
    assert_eq!(world.act("minutes"), format!("16: {held}"));
    world.act("wait 60s");
    world.act("turn");
    // All but one repeat the request, and then there is one more: it replaces the one without, whose curve starts over.
    for user in (1..=users).filter(|user| *user != 3) {
        world.act(&format!("user {user}"));
        let got = world.act("minutes");
        assert!(got.starts_with("16"), "user {user}: {got}");
    }
    world.act("user 513");
    world.act("buy Y 10 market 0.90");
    assert_eq!(world.act("minutes"), "");
    world.act("wait 60s");
    world.act("turn");
    for (user, expected) in [(1, "16-18: "), (2, "16-18: "), (4, "16-18: "), (512, "16: "), (513, "18: "), (3, "18: ")]
    {
        world.act(&format!("user {user}"));
        let got = world.act("minutes");
        assert!(got.starts_with(expected), "user {user}: {got}");
    }
    println!("{users} wallets followed");
}

impl World {
    /// `equity [N|all]`: wallet N, else the API wallet, at each full hour since the start: `hour: cash + value of
    /// baseline`.
    pub(super) fn equity_text(&mut self, words: &[&str]) -> String {
        let (wallets, first) = (self.wallets_word(words), START.hour());
        match self.ask(Command::Query(Query::Equity { wallets, first }), 0) {
            Answer::Equity(view) => {
                let row = |row: &EquityRow| {
                    let hour = row.at.hour() - first;
                    format!("{hour}: {} + {} of {}", text(row.cash), text(row.value), text(row.baseline))
                };
                view.rows.iter().map(row).collect::<Vec<_>>().join(" | ")
            }
            other => self.answer_text(other),
        }
    }

    /// `minutes [N|all]`: the same at each full minute, counted from nine on the first day; consecutive minutes with
    /// equal values are one entry, `from-to: cash + value of baseline`.
    pub(super) fn minutes_text(&mut self, words: &[&str]) -> String {
        let view = match self.ask(Command::Query(Query::EquityByMinute { wallets: self.wallets_word(words) }), 0) {
            Answer::Equity(view) => view,
            other => return self.answer_text(other),
        };
        let nine = Timestamp::of_hour(START.hour()).minute();
        let mut spans: Vec<(u32, u32, String)> = Vec::new();
        for row in &view.rows {
            let (minute, value) =
                (row.at.minute() - nine, format!("{} + {} of {}", text(row.cash), text(row.value), text(row.baseline)));
            match spans.last_mut() {
                Some((_, to, same)) if *to + 1 == minute && *same == value => *to = minute,
                _ => spans.push((minute, minute, value)),
            }
        }
        let span = |(from, to, value): &(u32, u32, String)| match from == to {
            true => format!("{from}: {value}"),
            false => format!("{from}-{to}: {value}"),
        };
        spans.iter().map(span).collect::<Vec<_>>().join(" | ")
    }

    fn wallets_word(&self, words: &[&str]) -> Wallets {
        match words.first() {
            None => Wallets::Api,
            Some(&"all") => Wallets::All,
            Some(n) => Wallets::One(self.wallet(n)),
        }
    }
}
