//! Wallets (engine/docs/account.md §4): opened, named, reset, archived.

use super::show::text;
use super::words::number;
use super::world::World;
use crate::command::{Answer, Command};
use crate::id::WalletId;
use crate::rules::WALLETS_PER_USER_MAX;
use crate::user::Wallet;

pub const SCENARIOS: &str = r#"
# a lookup of an order has the cash of its first answer, with an id and without
market 0 geopolitics 0.01
market 1 weather 0.01
book Y bids 0.38x1000 asks 0.40x1000
book Y1 bids 0.39x100 asks 0.42x1000
buy Y 10 market 0.50                         -> FILLED 10/10 @0.4 fee 0
buy Y 20 limit 0.30                          -> PENDING 0/20 reserved 6
buy Y1 50 market 0.50                        -> FILLED 50/50 @0.42 fee 0.609
sell Y 5 market 0.30                         -> FILLED 5/5 @0.38 fee 0
buy Y 10 limit 0.20 id=a                     -> PENDING 0/10 reserved 2
buy Y 200 limit 0.50                         -> InsufficientBalance 68.291 < 80
buy Y 20 limit 0.39                          -> PENDING 0/20 reserved 7.8
sell Y 5 limit 0.90                          -> PENDING 0/5 reserved 5 shares
buy Y1 10 limit 0.41 fok                     -> FokNotFilled 0 < 10 at 0.41 | CANCELLED FokNotFilled 0/10
money                                        -> 60.491 of 76.291
wait 1s
alive
then #1                                      -> 96
then #2                                      -> 90
then #3                                      -> 68.391
then #4                                      -> 70.291
then #5                                      -> 68.291
then #6                                      -> 60.491
then #7                                      -> 60.491
then #8                                      -> 60.491
// later events do not change that
cancel #2                                    -> CANCELLED UserCancelled 0/20
level Y ask 0.39x5
cycle                                        -> looked 1 filled 1 closed 0
order #6                                     -> PENDING 5/20 @0.39 fee 0 reserved 5.85
buy Y 10 limit 0.10                          -> PENDING 0/10 reserved 1
wait 1us
resolve 1 Y
settle 1                                     -> paid 1 expired 0
money                                        -> 115.491 of 124.341
then #1                                      -> 96
then #2                                      -> 90
then #3                                      -> 68.391
then #4                                      -> 70.291
then #5                                      -> 68.291
then #6                                      -> 60.491
then #9                                      -> 65.491
cancel all                                   -> cancelled #5 #6 #7 #9 released 8.85 and 5
then #2                                      -> 90
then #6                                      -> 60.491
then #9                                      -> 65.491
money                                        -> 124.341 of 124.341

# before a reset of the wallet: the remembered cash, else the present one
plan pro
book Y bids 0.38x1000 asks 0.40x1000
buy Y 10 limit 0.10 id=a                     -> PENDING 0/10 reserved 1
buy Y 20 limit 0.10                          -> PENDING 0/20 reserved 2
wait 1s
then #2                                      -> 9997
wallet reset api                             -> 2 Api 10000 of 10000 gen 2 after 2 orders 0 positions
then #1                                      -> 9999
then #2                                      -> 10000

# a sandbox: opened, named, traded in, archived
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
wallet open a                                -> 3 Sandbox 10000 of 10000 gen 1 a
facts                                        -> WalletOpened
wallet name 3 b                              -> 3 Sandbox 10000 of 10000 gen 1 b
facts                                        -> WalletRelabelled
wallet name 3 b                              -> 3 Sandbox 10000 of 10000 gen 1 b
facts                                        ->
wallet name 3                                -> 3 Sandbox 10000 of 10000 gen 1
wallet name 9 x                              -> WalletNotFound
buy Y 100 market 0.50 from=3                 -> FILLED 100/100 @0.4 fee 0
buy Y 10 limit 0.10 from=3                   -> PENDING 0/10 reserved 1
sell Y 30 limit 0.90 from=3                  -> PENDING 0/30 reserved 30 shares
money                                        -> 10000 of 10000
account                                      -> 3 wallets 1 positions 1 fills 0 closed 0 won
wallet archive 3                             -> 3 Sandbox 9960 of 10000 gen 1 archived after 2 orders 1 positions
facts                                        -> OrderClosed OrderClosed PositionReset WalletArchived
order #2                                     -> CANCELLED WalletArchived 0/10
buy Y 10 market 0.50 from=3                  -> WalletNotFound
wallet archive 3                             -> 3 Sandbox 9960 of 10000 gen 1 archived after 0 orders 0 positions
facts                                        ->
wallet reset 3                               -> WrongWalletKind
wallet archive 1                             -> WrongWalletKind
wallet archive 2                             -> WrongWalletKind
wallet archive 9                             -> WalletNotFound
account                                      -> 2 wallets 0 positions 0 fills 0 closed 0 won

# the count of sandboxes of a plan; archived ones do not count
wallet open                                  -> SandboxLimit
grant pro                                    -> done
wallet open                                  -> 3 Sandbox 10000 of 10000 gen 1
wallet open                                  -> 4 Sandbox 10000 of 10000 gen 1
wallet open                                  -> 5 Sandbox 10000 of 10000 gen 1
wallet open                                  -> SandboxLimit
wallet archive 4                             -> 4 Sandbox 10000 of 10000 gen 1 archived after 0 orders 0 positions
wallet open x                                -> 6 Sandbox 10000 of 10000 gen 1 x
wallet open                                  -> SandboxLimit
grant pro_plus                                -> done
wallet open                                  -> 7 Sandbox 25000 of 25000 gen 1

# a sandbox that is reset is replaced by another one, with the cash of the present plan
plan pro
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
wallet open a                                -> 3 Sandbox 10000 of 10000 gen 1 a
buy Y 100 market 0.50 from=3                 -> FILLED 100/100 @0.4 fee 0
buy Y 10 limit 0.10 from=3                   -> PENDING 0/10 reserved 1
wallet reset 3                               -> 4 Sandbox 10000 of 10000 gen 2 a after 3 after 1 orders 1 positions
facts                                        -> OrderClosed PositionReset WalletArchived WalletOpened
order #2                                     -> CANCELLED WalletArchived 0/10
wallet reset 3                               -> WrongWalletKind
grant pro_plus                                -> done
wallet reset 4                               -> 5 Sandbox 25000 of 25000 gen 3 a after 4 after 0 orders 0 positions
grant free                                   -> done
wallet reset 5                               -> 6 Sandbox 25000 of 25000 gen 4 a after 5 after 0 orders 0 positions

# the MAIN wallet keeps its id; a plan allows a count of resets within 30 days
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
buy Y 100 market 0.50 from=main              -> FILLED 100/100 @0.4 fee 0
buy Y 10 limit 0.10 from=main                -> PENDING 0/10 reserved 1
wallet reset 1                               -> 1 Main 1000 of 1000 gen 2 after 1 orders 1 positions
facts                                        -> OrderClosed PositionReset WalletReset
order #2                                     -> CANCELLED BalanceReset 0/10
wallet reset 1                               -> MainResetsSpent
wallet reset 2                               -> WrongWalletKind
wait 719h
wallet reset 1                               -> MainResetsSpent
wait 1h
wallet reset 1                               -> 1 Main 1000 of 1000 gen 3 after 0 orders 0 positions
grant pro                                    -> done
wallet reset 1                               -> 1 Main 1000 of 1000 gen 4 after 0 orders 0 positions
wallet reset 1                               -> 1 Main 1000 of 1000 gen 5 after 0 orders 0 positions
wallet reset 1                               -> 1 Main 1000 of 1000 gen 6 after 0 orders 0 positions
wallet reset 1                               -> MainResetsSpent
grant pro_plus                                -> done
wallet reset 1                               -> 1 Main 1000 of 1000 gen 7 after 0 orders 0 positions
wallet reset 1                               -> 1 Main 1000 of 1000 gen 8 after 0 orders 0 positions

# the API wallet: not on the free plan; a better plan's baseline comes with the reset
market 0 geopolitics 0.01
book Y bids 0.38x1000 asks 0.40x1000
buy Y 100 market 0.50                        -> FILLED 100/100 @0.4 fee 0
buy Y 10 limit 0.10                          -> PENDING 0/10 reserved 1
wallet reset api                             -> ResetNeedsPlan
grant pro                                    -> done
money                                        -> 59 of 60
wallet reset api                             -> 2 Api 10000 of 10000 gen 2 after 1 orders 1 positions
facts                                        -> OrderClosed PositionReset WalletReset
money                                        -> 10000 of 10000
order #2                                     -> CANCELLED BalanceReset 0/10
closed                                       -> avg 0.4 realized 0 reset
account                                      -> 2 wallets 0 positions 1 fills 0 closed 0 won
history 5                                    -> Buy 100 for 40
holding Y                                    -> nothing
buy Y 10 market 0.50                         -> FILLED 10/10 @0.4 fee 0
sell Y 10 market 0.01                        -> FILLED 10/10 @0.38 fee 0
closed                                       -> avg 0.4 realized -0.2 | avg 0.4 realized 0 reset
account                                      -> 2 wallets 0 positions 3 fills 1 closed 0 won
wallet reset api                             -> 2 Api 10000 of 10000 gen 3 after 0 orders 0 positions

# the time between two resets of the API wallet
plan pro
rule api_cooldown 48h
wallet reset api                             -> 2 Api 10000 of 10000 gen 2 after 0 orders 0 positions
wallet reset api                             -> ResetCoolsDown until 48 h
wait 47h
wallet reset api                             -> ResetCoolsDown until 48 h
wallet reset 1                               -> 1 Main 1000 of 1000 gen 2 after 0 orders 0 positions
wait 1h
wallet reset api                             -> 2 Api 10000 of 10000 gen 3 after 0 orders 0 positions

# a key that has ended opens and resets no wallet, but may archive one
plan pro
key issue a                                  -> a Pro ReadTrade
wallet open x by=1                           -> 3 Sandbox 10000 of 10000 gen 1 x
key revoke 1                                 -> done
wallet open y by=1                           -> KeyRevoked
wallet reset 3 by=1                          -> KeyRevoked
wallet reset api by=1                        -> KeyRevoked
wallet archive 3                             -> 3 Sandbox 10000 of 10000 gen 1 x archived after 0 orders 0 positions

# without room nothing is opened or reset; a label and an archiving have some
plan pro
wallet open x                                -> 3 Sandbox 10000 of 10000 gen 1 x
room reserve
wallet open y                                -> NoRoom
wallet reset 3                               -> NoRoom
wallet reset api                             -> NoRoom
wallet name 3 z                              -> 3 Sandbox 10000 of 10000 gen 1 z
wallet archive 3                             -> 3 Sandbox 10000 of 10000 gen 1 z archived after 0 orders 0 positions
room none
wallet name 2 z                              -> NoRoom
"#;

impl World {
    /// `wallet open [LABEL]`, `wallet name N [LABEL]`, `wallet archive N`, `wallet reset N|api`; `by=N` as with keys.
    /// Wallets are numbered from 1: MAIN, API, then the others in the order of their opening.
    pub(super) fn wallet_command(&mut self, words: &[&str]) -> String {
        let by = words.iter().find_map(|word| word.strip_prefix("by=")).map(|word| self.key(word));
        let label = |at: usize| words.get(at).filter(|word| !word.contains('=')).map(|word| (*word).to_owned());
        let command = match words[0] {
            "open" => Command::OpenWallet { label: label(1), by },
            "name" => Command::RelabelWallet { wallet: self.wallet(words[1]), label: label(2) },
            "archive" => Command::ArchiveWallet { wallet: self.wallet(words[1]) },
            _ if words[1] == "api" => Command::ResetApiWallet { by },
            _ => Command::ResetWallet { wallet: self.wallet(words[1]), by },
        };
        match self.ask(command, 0) {
            Answer::Wallet(wallet) => self.wallet_text(&wallet),
            Answer::Emptied(emptied) => format!(
                "{} after {} orders {} positions",
                self.wallet_text(&emptied.wallet),
                emptied.orders,
                emptied.positions
            ),
            other => self.answer_text(other),
        }
    }

    pub(super) fn wallet(&self, number_from_1: &str) -> WalletId {
        let index = number(number_from_1) as usize;
        self.the_user().wallets.get(index - 1).map_or(WalletId(77), |wallet| wallet.id)
    }

    pub(super) fn wallet_text(&self, wallet: &Wallet) -> String {
        let number = |id: WalletId| self.the_user().wallets.iter().position(|known| known.id == id).unwrap_or(98) + 1;
        let mut shown = format!("{} {:?}", number(wallet.id), wallet.kind);
        shown += &format!(" {} of {} gen {}", text(wallet.available()), text(wallet.baseline), wallet.generation);
        if let Some(label) = wallet.label() {
            shown += &format!(" {label}");
        }
        if let Some(parent) = wallet.parent() {
            shown += &format!(" after {}", number(parent));
        }
        if !wallet.is_active() {
            shown += " archived";
        }
        shown
    }
}

/// A user with the maximum count of wallets, the last of them active and with a trade.
fn full(world: &mut World, user: u64) {
    world.act(&format!("user {user}"));
    for number in 3..=WALLETS_PER_USER_MAX {
        world.act("wallet open");
        if number < WALLETS_PER_USER_MAX {
            world.act(&format!("wallet archive {number}"));
        }
    }
    let bought = world.act(&format!("buy Y 10 market 0.50 from={WALLETS_PER_USER_MAX}"));
    assert_eq!(bought, "FILLED 10/10 @0.4 fee 0");
}

#[test]
fn wallets_are_bounded_and_count_for_a_page_of_points() {
    let mut world = World::of("market 0 ");
    for line in ["plan pro", "market 0 geopolitics 0.01", "book Y bids 0.38x1000 asks 0.40x1000", "cycle"] {
        world.act(line);
    }
    full(&mut world, 1);
    full(&mut world, 2);
    world.act("user 3");
    world.act("buy Y 10 market 0.50");
    // A turn has two pages, and one such user fills each.
    world.act("wait 1h");
    let (now, before) = (world.now, world.out.records.len());
    for points in [2, 3, 3] {
        let (shard, inbox, out) = world.parts();
        shard.turn(inbox, now, out);
        assert_eq!(out.records.len() - before, points);
    }
    world.act("user 1");
    let last = WALLETS_PER_USER_MAX;
    let rows = [
        ("wallet open".to_owned(), "TooManyWallets"),
        (format!("wallet reset {last}"), "TooManyWallets"),
        ("wallet reset 1".to_owned(), "1 Main 1000 of 1000 gen 2 after 0 orders 0 positions"),
        ("wallet reset api".to_owned(), "2 Api 10000 of 10000 gen 2 after 0 orders 0 positions"),
    ];
    for (line, expected) in &rows {
        assert_eq!(world.act(line), *expected, "{line}");
    }
    let archived = world.act(&format!("wallet archive {last}"));
    assert!(archived.ends_with("archived after 0 orders 1 positions"), "{archived}");
    assert_eq!(world.act("wallet open"), "TooManyWallets");
    println!("{} commands at the bound of {last} wallets", rows.len() + 2);
    world.check().expect("all invariants");
}
