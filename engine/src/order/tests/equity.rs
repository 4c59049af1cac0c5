//! Equity (account.md §4): what a wallet is worth at each full hour, through resets, ends and starts.

use super::show::text;
use super::world::{START, World};
use crate::command::{Answer, Command, Query, Wallets};
use crate::user::equity::EquityRow;

pub const SCENARIOS: &str = r#"
# an hour's worth: what moved gets a point, what rests gets none
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
// The same again is no news; another mark is.
wait 1h
book Y bids 0.48x1000 asks 0.50x1000
turn
facts                                        -> OrderPlaced OrderFilled EquityNoted EquityNoted
equity                                       -> 1: 9960 + 39 of 10000 | 2: 9960 + 39 of 10000 | 3: 9960 + 49 of 10000

# a point is made before what happens behind the hour
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
// A look is enough.
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

# nor does a better plan change what was there before the first point
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

# hours before a wallet was there are left out
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

# hours that end while nobody runs get the worth of the end, once there are books
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

# the process ends among the points of an hour: whoever has none of it gets his after the next start
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

# the same with some hours between, in which other points are due
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

# what moved behind the hour had its point before, or needed none: nothing is made again
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

# where only the reserve is left, the points of those whose money moves come before that; a look gets none
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
"#;

impl World {
    /// `equity [N|all]`: wallet N, else the API wallet, at each full hour since the first moment: `hour: cash + value of
    /// baseline`.
    pub(super) fn equity_text(&mut self, words: &[&str]) -> String {
        let wallets = match words.first() {
            None => Wallets::Api,
            Some(&"all") => Wallets::All,
            Some(n) => Wallets::One(self.wallet(n)),
        };
        let first = START.hour();
        match self.ask(Command::Query(Query::Equity { wallets, first }), 0) {
            Answer::Equity(view) => {
                let row = |row: &EquityRow| {
                    let hour = row.at.hour() - first;
                    format!("{hour}: {} + {} of {}", text(row.cash), text(row.value), text(row.baseline))
                };
                view.hours.iter().map(row).collect::<Vec<_>>().join(" | ")
            }
            other => self.answer_text(other),
        }
    }
}
