//! A small town for tests: the markets of the contract's examples with their books, on a small edge.

pub use crate::http::testing::Answered;
use crate::http::testing::{NOW, World};
use engine::amount::{Bps, Cash, Price, Qty, TickSize};
use engine::book::registry::Books;
use engine::book::{BookWriter, LastTrade};
use engine::fact;
use engine::id::{InstrumentId, KeyId, MarketId, OrderId, Outcome, PositionId, TradeId, UserId, WalletId};
use engine::market::catalog::{Catalog, Figures};
use engine::market::mutation::MarketMutation;
use engine::market::terms::{Category, EventTerms, Listing, MarketState, Resolution, Venue};
use engine::mutation::Mutation;
use engine::order::{Liquidity, OrderTerms, PriceSource, Side};
use engine::time::Timestamp;
use engine::user::{Permissions, Tier, User, Users, WalletKind};
use engine::view::OrderView;
use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

/// The edge with every route, three markets, and one key that may trade.
pub struct Town {
    pub world: World,
    pub catalog: Arc<Catalog>,
    pub books: Arc<Books>,
    pub writer: RefCell<BookWriter>,
    /// Rain in Lisbon: the first outcome is quoted 0.41 to 0.42 and last traded at 0.42; the second has no book.
    pub market: MarketId,
    /// Never quoted; free of fees; tick 0.001.
    pub unquoted: MarketId,
    pub key: String,
}

/// An answer's body as text.
pub trait Text {
    fn text(&self) -> &str;
}

impl Text for Answered {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("JSON is UTF-8")
    }
}

impl Deref for Town {
    type Target = World;
    fn deref(&self) -> &World {
        &self.world
    }
}

pub fn listing(number: u8, tokens: [&str; 2]) -> Listing {
    Listing {
        venue: Venue::Synthetic,
        venue_market_id: number.to_string(),
        condition: format!("0x{}", format!("{number:02x}").repeat(32)),
        tokens: tokens.map(str::to_owned),
        outcomes: ["Yes", "No"].map(str::to_owned),
        slug: format!("market-{number}"),
        question: format!("Market {number}?"),
        description: None,
        image: None,
        label: None,
        category: Category::Weather,
        tags: Vec::new(),
        event: None,
        tick: TickSize(100),
        min_order_size: None,
        neg_risk: false,
        start: None,
        end: Some(Timestamp(1_791_072_000_000_000)),
        updown: None,
        sports: false,
    }
}

impl Town {
    /// Requests by `send` have no rate limit; those without the key of the town have that of their address, two a second.
    #[expect(clippy::new_without_default, reason = "tests say what they make")]
    pub fn new() -> Town {
        Town::with("[limits.tiers.free]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n")
    }

    /// A town with this configuration.
    pub fn with(toml: &str) -> Town {
        Town::of(World::new(toml, &crate::groups::tables()))
    }

    /// The town in this world.
    pub fn of(world: World) -> Town {
        let (catalog, books) = (world.edge.app.reads.catalog.clone(), world.edge.app.reads.books.clone());
        let lisbon = Listing {
            slug: "rain-in-lisbon-oct-3".to_owned(),
            question: "Rain in Lisbon on 3 October?".to_owned(),
            event: Some(EventTerms {
                id: "e-771".to_owned(),
                slug: "lisbon-weather".to_owned(),
                title: "Lisbon weather".to_owned(),
                image: None,
                end: None,
            }),
            ..listing(0x51, ["81140002", "55200077"])
        };
        let free =
            Listing { category: Category::Geopolitics, tick: TickSize(10), ..listing(0x90, ["90000001", "90000002"]) };
        let crypto = Listing { category: Category::Crypto, ..listing(0x20, ["20000001", "20000002"]) };
        for (id, listing) in [lisbon, free, crypto].into_iter().enumerate() {
            let (market, listing) = (MarketId(id as u32), Box::new(listing));
            catalog.publish(&MarketMutation::MarketListed(fact::MarketListed {
                market,
                listing,
                state: MarketState::Active,
                at: NOW,
            }));
        }
        let writer = RefCell::new(books.writer().expect("the first writer"));
        let key = world.key(Tier::Free, Permissions::ReadTrade);
        let town = Town { world, catalog, books, writer, market: MarketId(0), unquoted: MarketId(1), key };
        town.quote();
        town
    }

    /// Books and figures of the contract's examples.
    fn quote(&self) {
        let heard_at = Timestamp(NOW.0 - 310_000);
        let level = |price, size| (Price(price), Qty(size));
        let first = self.market.instrument(Outcome::First);
        let mut writer = self.writer.borrow_mut();
        writer.frame(0, heard_at, |frame| {
            let bids = [level(4_100, 85_000_000), level(4_000, 310_000_000)];
            let asks = [level(4_200, 60_500_000), level(4_400, 120_000_000)];
            frame.snapshot(first, &bids, &asks, Timestamp(1_790_932_444_120_000), Some("9ae1"));
            let trade = LastTrade { price: Price(4_200), size: Qty(1), taker_buys: true, at: heard_at };
            frame.trade(first, trade);
        });
        let figures = Figures { volume_24h: Some(1_822_500_000), volume_total: Some(9_310_000_000), liquidity: None };
        self.catalog.figures(self.market, figures, Timestamp(NOW.0 - 5_000_000));
        self.catalog.sort();
    }

    pub fn condition(&self) -> &str {
        &self.catalog.market(self.market).expect("listed").listing.condition
    }

    pub fn resolve(&self, winner: Outcome) {
        let resolution = Resolution::Winner(winner);
        self.catalog.publish(&MarketMutation::MarketResolved(fact::MarketResolved {
            market: self.market,
            resolution,
            at: NOW,
        }));
    }

    /// One request with the town's key.
    pub fn send(&self, method: &str, target: &str, body: &str) -> Answered {
        self.world.send(method, target, &[("x-api-key", &self.key)], body)
    }

    /// One request with another key.
    pub fn send_as(&self, key: &str, method: &str, target: &str, body: &str) -> Answered {
        self.world.send(method, target, &[("x-api-key", key)], body)
    }

    /// As another user, with further headers, without a body.
    pub fn send_as_with(&self, key: &str, method: &str, target: &str, headers: &[(&str, &str)]) -> Answered {
        let mut all = vec![("x-api-key", key)];
        all.extend_from_slice(headers);
        self.world.send(method, target, &all, "")
    }

    /// The same with further headers.
    pub fn send_with(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut all = vec![("x-api-key", self.key.as_str())];
        all.extend_from_slice(headers);
        self.world.send(method, target, &all, body)
    }
}

/// One user's state, made of facts as the shard makes them. Ids are those of the contract's examples, so they are
/// small, and the user is number 0.
pub struct Trader {
    users: Users,
    instrument: InstrumentId,
}

const OWNER: UserId = UserId(0);
/// The API wallet of the examples.
pub const WALLET: WalletId = WalletId(3);

impl Trader {
    /// A user with this much cash in the API wallet, who trades this instrument.
    pub fn new(cash: i64, instrument: InstrumentId) -> Trader {
        let mut users = Users::default();
        users.apply(OWNER, &Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at: NOW }));
        let opened = Mutation::WalletOpened(fact::WalletOpened {
            wallet: WALLET,
            kind: WalletKind::Api,
            label: None,
            baseline: Cash(cash),
            generation: 1,
            parent: None,
            at: NOW,
        });
        users.apply(OWNER, &opened);
        // The examples' ids are far from the first ones, and a shard skips few.
        let mut user = users.take(OWNER).expect("created");
        user.next_object = 90_000;
        users.insert(user);
        Trader { users, instrument }
    }

    /// A limit BUY of these shares, to be changed by the test.
    pub fn terms(&self, limit: u16, shares: u64) -> OrderTerms {
        OrderTerms::limit(WALLET, KeyId(1), self.instrument, Side::Buy, Price(limit), Qty::from_shares(shares))
    }

    pub fn place(&mut self, order: u64, terms: OrderTerms, at: Timestamp) {
        self.users.apply(
            OWNER,
            &Mutation::OrderPlaced(fact::OrderPlaced { order: OrderId(order), terms, counted: true, at }),
        );
    }

    /// A fill of an order: shares in 10⁻⁶, notional and fee in 10⁻⁶ USD.
    pub fn fill(&mut self, order: u64, trade: u64, (qty, notional, fee): (u64, i64, i64), how: Filled) {
        let fact = Mutation::OrderFilled(fact::OrderFilled {
            order: OrderId(order),
            trade: TradeId(trade),
            position: PositionId(7_001),
            qty: Qty(qty),
            notional: Cash(notional),
            fee: Cash(fee),
            fee_rate: Bps(if how.liquidity == Liquidity::Taker { 500 } else { 0 }),
            liquidity: how.liquidity,
            source: how.source,
            quote_age_ms: how.quote_age_ms,
            cost_out: Cash::ZERO,
            reserved_cash: Cash::ZERO,
            reserved_qty: Qty::ZERO,
            levels: Vec::new(),
            at: how.at,
            venue_at: None,
        });
        self.users.apply(OWNER, &fact);
    }

    pub fn apply(&mut self, fact: &Mutation) {
        self.users.apply(OWNER, fact);
    }

    pub fn user(&self) -> &User {
        self.users.get(OWNER).expect("created")
    }

    /// The order as the shard answers it.
    pub fn view(&self, order: u64) -> OrderView {
        let user = self.user();
        let order = user.order(OrderId(order)).expect("placed").clone();
        OrderView {
            fills: user.fills_of(&order),
            available: user.wallet(order.terms.wallet).expect("opened").available(),
            position: user.open_position(order.terms.wallet, order.terms.instrument).cloned(),
            order,
            is_replay: false,
            queue: None,
        }
    }
}

/// How a fill came about.
#[derive(Clone, Copy)]
pub struct Filled {
    pub liquidity: Liquidity,
    pub source: PriceSource,
    pub quote_age_ms: Option<u32>,
    pub at: Timestamp,
}

/// Compares two JSON texts field by field: every field of `expected` is in `shown` with that value, in any order.
pub fn shows(shown: &[u8], expected: &str) {
    let shown: serde_json::Value = serde_json::from_slice(shown).expect("we write JSON");
    let expected: serde_json::Value = serde_json::from_str(expected).expect("the example is JSON");
    covers(&shown, &expected, "");
}

fn covers(shown: &serde_json::Value, expected: &serde_json::Value, path: &str) {
    use serde_json::Value;
    match (shown, expected) {
        (Value::Object(shown), Value::Object(expected)) => {
            for (name, expected) in expected {
                let path = format!("{path}.{name}");
                covers(shown.get(name).unwrap_or_else(|| panic!("{path} is missing")), expected, &path);
            }
        }
        (Value::Array(shown), Value::Array(expected)) => {
            assert_eq!(shown.len(), expected.len(), "{path}");
            for (at, (shown, expected)) in shown.iter().zip(expected).enumerate() {
                covers(shown, expected, &format!("{path}[{at}]"));
            }
        }
        (shown, expected) => assert_eq!(shown, expected, "{path}"),
    }
}
