//! All that may be asked of a shard, and what comes back.

use crate::amount::{Cash, Price, Qty};
use crate::id::{InstrumentId, KeyId, MarketId, OrderId, PositionId, TradeId, UserId, WalletId};
use crate::order::{EntryRoute, OrderType, Side, Status, TimeInForce};
use crate::reject::Reject;
use crate::time::Timestamp;
use crate::user::{Permissions, Tier, Wallet};
use crate::view::{
    AccountView, CancelledOrders, EmptiedWallet, EquityView, FactPage, FillPage, FillView, HistoryPage, KeyView,
    OrderPage, OrderView, PositionView, UserView, VenuePage,
};

/// One request on its way to the shard of its user.
#[derive(Debug)]
pub struct Envelope<R> {
    pub owner: UserId,
    pub command: Command,
    /// Server time at which it was handed to the shard: the start of its 2 s (trading.md §9).
    pub received_at: Timestamp,
    /// Where the answer goes; opaque to the engine.
    pub reply: R,
}

/// What is asked of one user's shard. Queries change nothing and take the same road, so that an answer never shows
/// what a crash could take back.
#[derive(Clone, Debug)]
pub enum Command {
    /// First sight of a user: row, MAIN wallet and API wallet in one record.
    CreateUser(CreateUser),
    SetGrant {
        tier: Tier,
        expires_at: Option<Timestamp>,
    },
    IssueKey(IssueKey),
    RenameKey {
        key: KeyId,
        name: Option<String>,
    },
    RotateKey {
        key: KeyId,
        replacement: Secret,
        /// As in [`IssueKey`].
        by: Option<KeyId>,
    },
    RevokeKey {
        key: KeyId,
    },
    NoteKeyUsed {
        key: KeyId,
    },

    Place(Box<Placement>),
    /// In order, one lock hold, one record per entry; a failed entry does not stop the next (trading.md §7).
    PlaceBatch(Vec<Placement>),
    Cancel {
        order: OrderId,
    },
    /// Those of them that are open; the others are told apart in the answer. At most a few thousand.
    CancelOrders {
        orders: Vec<OrderId>,
    },
    CancelAll {
        wallets: Wallets,
    },
    /// Either or both; an unknown market is an empty answer. `market: None, instrument: None` matches nothing.
    CancelMarket {
        market: Option<MarketId>,
        instrument: Option<InstrumentId>,
        wallets: Wallets,
    },
    /// Arms a heartbeat, or beats it (trading.md §8).
    Beat {
        label: String,
        interval_ms: u32,
    },
    /// The same in the venue's form (venue.md §8): each beat names the one before it and is given a new name.
    BeatByName {
        shown: BeatName,
        next: [u8; 16],
    },
    EndBeats,

    /// Pays out one resolved market for every user of this shard; owner is [`crate::id::MARKETS`].
    Settle {
        market: MarketId,
    },
    /// Resting orders meet the prints that were handed over before this ([`crate::print`]); owner is
    /// [`crate::id::MARKETS`].
    MeetPrints,
    /// The matching cycle that is due at this venue time; owner is [`crate::id::MARKETS`].
    Cycle {
        venue_now: Timestamp,
        sweeps: Sweeps,
    },

    /// A new SANDBOX wallet (account.md §1.3).
    OpenWallet {
        label: Option<String>,
        /// As in [`IssueKey`].
        by: Option<KeyId>,
    },
    RelabelWallet {
        wallet: WalletId,
        label: Option<String>,
    },
    /// Puts a SANDBOX wallet away: its orders end, its positions close without cash.
    ArchiveWallet {
        wallet: WalletId,
    },
    /// A MAIN wallet begins anew, a SANDBOX wallet is followed by another one; emptied as above.
    ResetWallet {
        wallet: WalletId,
        by: Option<KeyId>,
    },
    /// The API wallet begins anew, with its baseline (account.md §4).
    ResetApiWallet {
        by: Option<KeyId>,
    },

    Query(Query),
}

impl Command {
    /// The key in whose name money, shares or keys would be gained. It is looked at again in the shard: it may have
    /// ended while the request was on its way (reliability 44). What only makes things safer names none, so that it
    /// is never refused.
    pub fn asked_by(&self) -> Option<KeyId> {
        match self {
            Command::Place(placement) => Some(placement.key),
            Command::PlaceBatch(placements) => placements.first().map(|placement| placement.key),
            Command::IssueKey(asked) => asked.by,
            Command::RotateKey { by, .. }
            | Command::OpenWallet { by, .. }
            | Command::ResetWallet { by, .. }
            | Command::ResetApiWallet { by } => *by,
            _ => None,
        }
    }

    /// What of its user's state it will read first.
    pub(crate) fn ahead(&self) -> Ahead<'_> {
        match self {
            Command::Cancel { order } | Command::Query(Query::Order(order)) => Ahead::Order(*order),
            Command::Place(placement) => Ahead::Placement(placement),
            _ => Ahead::User,
        }
    }
}

/// What is looked at before a command is run or a fact applied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ahead<'a> {
    User,
    Order(OrderId),
    Placement(&'a Placement),
    /// A request that is about to be remembered by this id.
    Request(&'a str),
}

/// What a cycle ends because its time has come. As long as a clock is doubted, what is due by it waits. Orders past their
/// expiration, and those of a user whose heartbeat has lapsed, fill by no book and no print meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sweeps {
    #[default]
    All,
    /// The orders of markets that are over, by a venue time that nobody doubts; none by server time.
    ByVenueTime,
    None,
}

impl Sweeps {
    /// Heartbeats lapse, and GTD orders expire.
    pub fn by_server_time(self) -> bool {
        self == Sweeps::All
    }

    /// Orders of markets end that are over.
    pub fn by_venue_time(self) -> bool {
        self != Sweeps::None
    }
}

/// What may be asked about one user.
#[derive(Clone, Debug)]
pub enum Query {
    User,
    Keys,
    Order(OrderId),
    OrderByClientId(String),
    /// The orders with these EIP-712 hashes; at most a few thousand.
    SignedOrders(Vec<[u8; 32]>),
    /// The EIP-712 hashes of these orders, where they have one.
    OrderHashes(Vec<OrderId>),
    Orders(OrderFilter),
    /// Wallets and open positions: balance, portfolio.
    Account {
        wallets: Wallets,
    },
    Positions {
        wallets: Wallets,
        market: Option<MarketId>,
        open: Option<bool>,
    },
    Fills(FillFilter),
    /// A page of a longer walk over the trade history.
    FillSpan(FillSpan),
    /// A page of a longer walk over the positions.
    EpisodeSpan(EpisodeSpan),
    /// Rows of the venue's own order list (venue.md §7.3).
    VenueOrders(VenueFilter),
    /// The same of its trade list (venue.md §7.4).
    VenueTrades(VenueFilter),
    /// What these wallets are worth, and what they were at each full hour from `first` on.
    Equity {
        wallets: Wallets,
        /// Hours since 1970.
        first: u32,
    },
    /// What these wallets are worth, and what they were at each full minute of the last 24 hours, as far as that is known
    /// (`shard/minutes.rs`), else at its full hours.
    EquityByMinute {
        wallets: Wallets,
    },
    /// Order facts numbered above `after`, those that are still known: at most `limit`, and at most
    /// [`crate::shard::facts::FACTS_PER_PAGE_MAX`].
    Facts {
        after: u64,
        limit: usize,
    },
}

/// Which wallets a request is about (account.md §1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wallets {
    /// The API wallet, the default.
    Api,
    /// Every active wallet.
    All,
    One(WalletId),
    /// Every wallet, archived ones too (lookups by id).
    Any,
}

/// Filter and page of an order list; newest first, keyset (created_at, id) descending.
#[derive(Clone, Debug)]
pub struct OrderFilter {
    pub wallets: Wallets,
    pub status: Option<Status>,
    pub market: Option<MarketFilter>,
    pub side: Option<Side>,
    /// Rows strictly after this key.
    pub after: Option<(Timestamp, OrderId)>,
    pub offset: usize,
    pub limit: usize,
}

/// Filter and page of the trade history; newest first.
#[derive(Clone, Debug)]
pub struct FillFilter {
    pub wallets: Wallets,
    pub market: Option<MarketFilter>,
    pub side: Option<Side>,
    pub offset: usize,
    pub limit: usize,
}

/// A page of the trade history by its place in it, newest first: fills at `from..=to` below `before`.
#[derive(Clone, Debug)]
pub struct FillSpan {
    pub wallets: Wallets,
    pub market: Option<MarketFilter>,
    pub from: Timestamp,
    pub to: Timestamp,
    pub before: Option<TradeId>,
    pub limit: usize,
}

/// A page of a user's episodes by its place, highest id first: those below `before`.
#[derive(Clone, Debug)]
pub struct EpisodeSpan {
    pub wallets: Wallets,
    pub market: Option<MarketFilter>,
    pub which: Episodes,
    pub before: Option<PositionId>,
    pub limit: usize,
}

/// Which episodes of holding an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Episodes {
    All,
    /// Those that a resolution paid out at `from..=to`.
    Settled {
        from: Timestamp,
        to: Timestamp,
    },
}

/// Filter and page of the venue-shaped lists; newest first, keyset (time, id) descending, where the time is that of
/// the order's placement or of the fill. An unknown market or token never comes here: its page is empty.
#[derive(Clone, Debug)]
pub struct VenueFilter {
    pub wallets: Wallets,
    /// Orders only.
    pub statuses: Statuses,
    pub market: Option<MarketId>,
    pub instrument: Option<InstrumentId>,
    /// One order or trade.
    pub only: Option<u64>,
    /// Not before this moment.
    pub since: Option<Timestamp>,
    /// Before this moment.
    pub until: Option<Timestamp>,
    /// Rows strictly after this key.
    pub after: Option<(Timestamp, u64)>,
    pub limit: usize,
}

/// A set of statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statuses(u8);

impl Statuses {
    pub const NONE: Statuses = Statuses(0);
    pub const OPEN: Statuses = Statuses::of(&[Status::Pending]);
    pub const ALL: Statuses = Statuses::of(&[Status::Pending, Status::Filled, Status::Cancelled, Status::Expired]);

    pub const fn of(statuses: &[Status]) -> Statuses {
        let (mut bits, mut at) = (0, 0);
        while at < statuses.len() {
            bits |= 1 << statuses[at] as u8;
            at += 1;
        }
        Statuses(bits)
    }

    pub fn contains(self, status: Status) -> bool {
        self.0 & 1 << status as u8 != 0
    }
}

/// Which beat a client believes to be the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeatName {
    /// None: this is its first one.
    First,
    Known([u8; 16]),
    /// A text that names no beat.
    Nonsense,
}

/// A market filter; an unknown market matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketFilter {
    Only(MarketId),
    Unknown,
}

/// A new user.
#[derive(Clone, Debug)]
pub struct CreateUser {
    pub sub: Option<String>,
    pub email: Option<String>,
    /// Given with the user, without end (bulk users, the demo user).
    pub grant: Option<Tier>,
    /// Instead of the tier's baseline of the API wallet.
    pub api_balance: Option<Cash>,
}

/// What is kept of a new secret.
#[derive(Clone, Debug)]
pub struct Secret {
    pub hash: [u8; 32],
    pub alias_hash: [u8; 32],
    /// First 16 characters.
    pub prefix: String,
}

/// A key to be issued (keys.md §3). Gates that need lists or flags of the server (1–4, 6) are the asker's.
#[derive(Clone, Debug)]
pub struct IssueKey {
    pub secret: Secret,
    pub name: Option<String>,
    /// `None`: minted at the entitlement.
    pub tier: Option<Tier>,
    /// `None`: the default of the entitlement.
    pub permissions: Option<Permissions>,
    /// Refuse when any active key exists.
    pub bootstrap: bool,
    /// The key that asks; `None`: a session token, or the server itself.
    pub by: Option<KeyId>,
}

/// One order request, native or venue-shaped.
#[derive(Clone, Debug)]
pub struct Placement {
    pub key: KeyId,
    /// The key's effective tier: decides the daily cap.
    pub tier: Tier,
    pub route: EntryRoute,
    pub request: Option<RequestIdentity>,
    /// EIP-712 hash of a signed order, where it is to be its id. One that the user has already is not taken.
    pub order_hash: Option<[u8; 32]>,
    /// `Err`: the request is unsound in itself; that is said only after replay and daily cap had their say.
    pub terms: Result<PlacementTerms, Unsound>,
}

impl Placement {
    /// A request without an identity, of an order without a hash.
    pub fn new(key: KeyId, tier: Tier, route: EntryRoute, terms: Result<PlacementTerms, Unsound>) -> Placement {
        Placement { key, tier, route, request: None, order_hash: None, terms }
    }
}

/// The asker found the request unsound and knows why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsound;

/// Idempotency of a request (wire.md §11).
#[derive(Clone, Debug)]
pub struct RequestIdentity {
    pub client_order_id: String,
    /// SHA-256 over method, path and canonical body without the id.
    pub digest: [u8; 32],
    pub source: IdSource,
}

/// Where the id of a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdSource {
    /// The field `client_order_id` only.
    Body,
    /// The header `Idempotency-Key`, with or without the field.
    Header,
    /// Made from a signed order (venue.md §5.4): it is not shown as the order's client id, counts for ten minutes, and
    /// never refuses anything. No client can send its text.
    Implicit,
}

/// What is asked, in integers, already sound in itself (trading.md §5 steps 1–4).
#[derive(Clone, Debug)]
pub struct PlacementTerms {
    pub wallet: Option<WalletId>,
    /// `None`: unknown market, outcome or token.
    pub instrument: Option<InstrumentId>,
    pub side: Side,
    pub order_type: OrderType,
    pub time_in_force: TimeInForce,
    pub size: Size,
    pub price: AskedPrice,
    /// Unix seconds as sent; `None` = absent or unparsable (both are `INVALID_ORDER_EXPIRATION` for GTD).
    pub expiration: Option<Timestamp>,
    pub post_only: bool,
}

/// How much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// Already rounded down to 4 decimals; `rounded_from` is the text that was sent when that cut something off.
    Shares { qty: Qty, rounded_from: Option<String> },
    /// USD to spend, market BUY only.
    Amount(Cash),
}

/// A price as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedPrice {
    /// On the 10⁻⁴ grid, 1..=10 000.
    At(Price),
    /// A limit finer than 10⁻⁴: off every tick grid.
    OffGrid,
}

/// What comes back. An order's is the most frequent by far: it is large, so that it costs no allocation.
#[derive(Clone, Debug)]
pub enum Answer {
    Done,
    Created(UserId),
    User(Box<UserView>),
    Key(Box<KeyView>),
    /// The replacement, and when the old key ends.
    Rotated {
        replacement: Box<KeyView>,
        old_expires_at: Timestamp,
    },
    Keys(Vec<KeyView>),
    Order(OrderView),
    Orders(OrderPage),
    /// In the order in which they were asked for; `None`: the user has no such order.
    SignedOrders(Vec<Option<OrderId>>),
    OrderHashes(Vec<Option<[u8; 32]>>),
    Batch(Vec<BatchEntry>),
    Cancelled(CancelledOrders),
    /// Lapses at this server time unless beaten.
    Beating {
        lapses_at: Timestamp,
    },
    /// Another beat was the last one; `None`: no venue heartbeat is armed.
    WrongBeat {
        current: Option<[u8; 16]>,
    },
    Account(Box<AccountView>),
    Positions(Vec<PositionView>),
    Fills(FillPage),
    FillSpan(HistoryPage<FillView>),
    EpisodeSpan(HistoryPage<PositionView>),
    VenueOrders(VenuePage<OrderView>),
    VenueTrades(VenuePage<FillView>),
    Facts(FactPage),
    /// A refusal that left a killed order row (`X-Svc-Order-Id`), or that replays one.
    Killed {
        reject: Reject,
        order: OrderView,
    },
    Refused(Reject),
    /// A cycle: resting orders looked at, filled, closed, and how many rest in the shard now.
    Cycled {
        looked_at: u64,
        fills: u64,
        closed: u64,
        resting: u64,
    },
    Wallet(Box<Wallet>),
    /// A wallet was archived or reset.
    Emptied(Box<EmptiedWallet>),
    Equity(Box<EquityView>),
    /// A settlement: positions paid out and orders expired.
    Settled {
        positions: u64,
        orders: u64,
    },
}

/// What became of one entry of a batch.
#[derive(Clone, Debug)]
pub enum BatchEntry {
    Placed(OrderView),
    Killed { reject: Reject, order: OrderView },
    Refused(Reject),
}
