//! What resets of a SANDBOX wallet leave in memory and in snapshots: the table of gateway/docs/history.md §9.

use super::*;
use crate::amount::{Bps, Cash, Price, Qty};
use crate::id::{InstrumentId, KeyId, OrderId, PositionId, TradeId};
use crate::order::{Liquidity, OrderTerms, PriceSource, Side};
use crate::time::HOUR;
use crate::user::WalletKind;

const OWNER: UserId = UserId(7);

/// A user that resets its SANDBOX wallet again and again.
struct Resets {
    users: Users,
    wallet: WalletId,
    next: u32,
    generation: u32,
    at: Timestamp,
}

impl Resets {
    fn new() -> Resets {
        let (at, mut users) = (Timestamp(1_790_932_500_000_000), Users::default());
        users.apply(OWNER, &fact::UserCreated { sub: None, email: None, at }.into());
        let mut resets = Resets { users, wallet: WalletId(0), next: 1, generation: 0, at };
        resets.open(None);
        resets
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        OWNER.object(self.next - 1)
    }

    fn apply(&mut self, fact: impl Into<Mutation>) {
        self.users.apply(OWNER, &fact.into());
    }

    fn open(&mut self, parent: Option<WalletId>) {
        (self.wallet, self.generation) = (WalletId(self.number()), self.generation + 1);
        let (kind, baseline) = (WalletKind::Sandbox, Cash::from_dollars(10_000));
        let (wallet, generation, at) = (self.wallet, self.generation, self.at);
        self.apply(fact::WalletOpened { wallet, kind, label: None, baseline, generation, parent, at });
    }

    fn reset(&mut self) {
        self.at = self.at.plus(HOUR);
        let (wallet, at) = (self.wallet, self.at);
        self.apply(fact::WalletArchived { wallet, at });
        self.open(Some(wallet));
    }

    /// An order that is filled immediately, as a whole.
    fn fill(&mut self, side: Side, position: PositionId) {
        let (order, trade, at) = (OrderId(self.number()), TradeId(self.number()), self.at);
        let (qty, notional) = (Qty(1_000_000), Cash(500_000));
        let terms = OrderTerms::limit(self.wallet, KeyId(0), InstrumentId(3), side, Price(5_000), qty);
        self.apply(fact::OrderPlaced { order, terms, counted: true, at });
        self.apply(fact::OrderFilled {
            order,
            trade,
            position,
            qty,
            notional,
            fee: Cash(20_000),
            fee_rate: Bps(400),
            liquidity: Liquidity::Taker,
            source: PriceSource::BookWalk,
            quote_age_ms: None,
            cost_out: if side == Side::Sell { notional } else { Cash::ZERO },
            reserved_cash: Cash::ZERO,
            reserved_qty: Qty::ZERO,
            levels: Vec::new(),
            at,
            venue_at: None,
        });
    }

    fn note(&mut self, value: Cash) {
        self.at = self.at.plus(HOUR);
        let (wallet, at) = (self.wallet, self.at);
        self.apply(fact::EquityNoted { wallet, hour: Timestamp::of_hour(at.hour()), value, at });
    }

    /// Shares are bought and sold again: the wallet has three points, of its opening too, and no row that stays.
    fn trade(&mut self) {
        let position = PositionId(self.number());
        self.fill(Side::Buy, position);
        self.note(Cash(490_000));
        self.fill(Side::Sell, position);
        self.note(Cash::ZERO);
        for leaving in self.users.leaving(Timestamp(u64::MAX), 0) {
            self.users.depart(&leaving);
        }
    }

    fn snapshot(&self) -> usize {
        let mut bytes = Vec::new();
        put_user(self.users.get(OWNER).expect("it was created"), &mut bytes);
        bytes.len()
    }
}

#[test]
fn a_reset_leaves_few_bytes() {
    const RESETS: usize = 400;
    type Step = fn(&mut Resets);
    let table: [(&str, Step, usize, usize); 2] =
        [("unused", |_| {}, 152, 67), ("with trades that have left", |resets| resets.trade(), 488, 200)];
    for (name, step, memory_max, snapshot_max) in table {
        let mut resets = Resets::new();
        let many = |resets: &mut Resets| {
            for _ in 0..RESETS {
                step(resets);
                resets.reset();
            }
        };
        // Lists that have a bound, such as that of order facts, are full from here on.
        many(&mut resets);
        let before = resets.snapshot();
        let info = allocation_counter::measure(|| many(&mut resets));
        let memory = usize::try_from(info.bytes_current).expect("it grows").div_ceil(RESETS);
        let snapshot = (resets.snapshot() - before).div_ceil(RESETS);
        println!("a reset of a wallet, {name}: {memory} bytes of memory, {snapshot} of a snapshot");
        let user = resets.users.get(OWNER).expect("it was created");
        assert_eq!((user.wallets.len(), user.orders().len()), (2 * RESETS + 1, 0), "{name}");
        assert_eq!(user.departed().is_some(), name != "unused");
        resets.users.check_all().unwrap_or_else(|broken| panic!("{name}: {broken}"));
        assert!(memory <= memory_max && snapshot <= snapshot_max, "{name}: {memory}, {snapshot}");
        // What a snapshot has of it is read again.
        let mut bytes = Vec::new();
        put_user(user, &mut bytes);
        let read = take_user(&mut &bytes[..], &mut Shared::default()).expect("just written");
        assert_eq!(read.wallets, user.wallets, "{name}");
    }
    println!("resets: {} cases", table.len());
}
