//! Commands and queries to a shard, and their answers.

pub use crate::billing_event::{BillingEvent, BillingNews, BillingOutcome, SubscriptionNews};

use crate::amount::{Cash, Price, Qty};
use crate::departed::Departures;
use crate::id::{InstrumentId, KeyId, MarketId, OrderId, PositionId, TradeId, UserId, WalletId};
use crate::look_up::{Found, LookUp};
use crate::order::{EntryRoute, OrderType, Side, Status, TimeInForce};
use crate::rehearsal::{DeclaredAddress, Finding};
use crate::reject::Reject;
use crate::shard::elsewhere::Elsewhere;
use crate::time::{Timestamp, UtcDay};
use crate::user::alerts::{AlertKinds, Channel};
use crate::user::backtests::BacktestFigures;
use crate::user::{AlertTarget, Backtest, BacktestMeter, Billing, Permissions, Tier, Wallet};
use crate::view::{
    AccountView, AlertsView, CancelledOrders, EmptiedWallet, EquityView, FactPage, FillPage, FillView, HistoryPage,
    KeyView, OrderPage, OrderView, OwedAlert, PositionView, UserView, VenuePage,
};
use std::sync::Arc;

/// One request to the shard of its user.
#[derive(Debug)]
pub struct Envelope<R> {
    pub owner: UserId,
    pub command: Command,
    /// Server time at which the shard received it; its 2 s start here (engine/docs/orders.md §4).
    pub received_at: Timestamp,
    /// Where the answer goes; opaque to the engine.
    pub reply: R,
}

/// A command or query to the shard of one user. Queries change nothing and take the same path, so an answer never shows
/// state that a crash could take back.
#[derive(Clone, Debug)]
pub enum Command {
    /// Creates a user: row, MAIN wallet and API wallet in one record.
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
    /// The address of a user that has none (gateway/docs/keys.md §6). One that has an address keeps it.
    NoteEmail {
        email: String,
    },
    /// Chooses the set of realism of a key's later orders; `None`: the one of keys without a choice.
    ChooseRealism {
        key: KeyId,
        set: Option<String>,
    },

    Place(Box<Placement>),
    /// One turn of the user and one record per entry, in order; a failed entry does not stop the next
    /// (engine/docs/orders.md §4).
    PlaceBatch(Vec<Placement>),
    Cancel {
        order: OrderId,
    },
    /// Cancels those that are open; the answer lists the others by reason. At most a few thousand.
    CancelOrders {
        orders: Vec<OrderId>,
    },
    CancelAll {
        wallets: Wallets,
    },
    /// At least one of the two is set: with both `None` it matches nothing. An unknown market is an empty answer.
    CancelMarket {
        market: Option<MarketId>,
        instrument: Option<InstrumentId>,
        wallets: Wallets,
    },
    /// Arms a heartbeat or beats an armed one (engine/docs/orders.md §6).
    Beat {
        label: String,
        interval_ms: u32,
    },
    /// The venue's form of a heartbeat (gateway/docs/venue-clients.md §8): each beat names the one before it and
    /// receives a new name.
    BeatByName {
        shown: BeatName,
        next: [u8; 16],
    },
    EndBeats,

    /// Pays out one resolved market for every user of this shard; owner is [`crate::id::MARKETS`].
    Settle {
        market: MarketId,
    },
    /// Matches resting orders with the prints handed over before this command ([`crate::print`]); owner is
    /// [`crate::id::MARKETS`].
    MeetPrints,
    /// The matching cycle due at this venue time; owner is [`crate::id::MARKETS`].
    Cycle {
        venue_now: Timestamp,
        sweeps: Sweeps,
    },
    /// Drops rows of this shard's users that the history store has; owner is [`crate::id::MARKETS`]. Nothing is
    /// journaled. The answer does not wait for the last row.
    Depart(Arc<Departures>),
    /// Journals that history is kept from this day on ([`crate::market::Markets::history_from`]); owner is
    /// [`crate::id::MARKETS`]. It has no other effect here: readers learn of it from who asked, after the release of the
    /// record. Refused while the log is short of room.
    CutHistory {
        day: UtcDay,
    },

    /// A new SANDBOX wallet (engine/docs/account.md §4).
    OpenWallet {
        label: Option<String>,
        /// As in [`IssueKey`].
        by: Option<KeyId>,
    },
    /// A new COMPETITION wallet with this cash, for an administrator (engine/docs/account.md §4).
    OpenCompetition {
        label: Option<String>,
        /// Above zero, at most [`crate::rules::CASH_MAX`].
        balance: Cash,
    },
    RelabelWallet {
        wallet: WalletId,
        label: Option<String>,
    },
    /// Archives a SANDBOX wallet: its orders end, its positions close without cash.
    ArchiveWallet {
        wallet: WalletId,
    },
    /// Empties a wallet as [`Command::ArchiveWallet`] does. A MAIN wallet starts its next generation; a SANDBOX wallet
    /// is replaced by a new one.
    ResetWallet {
        wallet: WalletId,
        by: Option<KeyId>,
    },
    /// Starts the next generation of the API wallet with its baseline (engine/docs/account.md §4).
    ResetApiWallet {
        by: Option<KeyId>,
    },

    /// A new back-test. An earlier one of the same request is answered instead.
    CreateBacktest(Box<NewBacktest>),
    StartBacktest {
        job: [u8; 16],
    },
    EndBacktest {
        job: [u8; 16],
        result: BacktestResult,
    },

    /// Notes the payment provider's id of the user (gateway/docs/billing.md §4), unless there is another one than `instead_of`.
    NoteCustomer {
        customer: String,
        instead_of: Option<String>,
    },
    /// An event of the payment provider, with what it changes.
    Bill(Box<BillingEvent>),
    /// A new chat or webhook for alerts (gateway/docs/integrations.md §3, §4).
    AddAlertTarget(Box<NewAlertTarget>),
    ChangeAlertTarget {
        channel: Channel,
        target: u32,
        change: TargetChange,
    },
    RemoveAlertTarget {
        channel: Channel,
        target: u32,
    },
    /// These kinds of alerts go by mail, or not any more.
    ChooseMail {
        on: AlertKinds,
        off: AlertKinds,
    },
    /// What became of an attempt to deliver an alert. `target`: `None` is mail.
    NoteAlert {
        target: Option<u32>,
        alert: u64,
        outcome: AlertOutcome,
    },
    /// A notice of the operator (gateway/docs/integrations.md §6).
    Notify {
        text: String,
    },

    /// Journals what a rehearsal of the venue's checks found in signed orders of a key. It has no other effect.
    NoteStrict {
        key: KeyId,
        findings: Vec<Finding>,
    },
    /// Journals what an administrator declares about an address; owner is [`crate::id::MARKETS`]. As with
    /// [`Command::CutHistory`], readers learn of it from who asked.
    DeclareAddress {
        address: [u8; 20],
        declared: DeclaredAddress,
    },

    /// A command that was handed back by [`Answer::LookUp`], with what was found.
    Found(Box<Found>),
    /// Ends a look-up without an outcome ([`LookUp::end`]).
    EndLookUp {
        ticket: u64,
    },

    Query(Query),
}

impl Command {
    /// The key that authorises a gain of money, shares or keys. The shard checks it again: it may have ended after the
    /// request was admitted. A command that only reduces risk names no key, so it is never refused for one.
    pub fn authorising_key(&self) -> Option<KeyId> {
        match self {
            Command::Place(placement) => Some(placement.key),
            Command::PlaceBatch(placements) => placements.first().map(|placement| placement.key),
            Command::IssueKey(request) => request.by,
            Command::RotateKey { by, .. }
            | Command::OpenWallet { by, .. }
            | Command::ResetWallet { by, .. }
            | Command::ResetApiWallet { by } => *by,
            Command::CreateBacktest(new) => Some(new.by),
            _ => None,
        }
    }

    /// The state of its user that this command reads first.
    pub(crate) fn ahead(&self) -> Ahead<'_> {
        match self {
            Command::Cancel { order } | Command::Query(Query::Order(order)) => Ahead::Order(*order),
            Command::Place(placement) => Ahead::Placement(placement),
            _ => Ahead::User,
        }
    }
}

/// State to prefetch before a command runs or a fact is applied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ahead<'a> {
    User,
    Order(OrderId),
    Placement(&'a Placement),
    /// The request that is about to be remembered by this id.
    Request(&'a str),
}

/// What a cycle may end because its time has passed. While a clock is in doubt, nothing ends by it, and no remembered
/// request leaves memory. Meanwhile no book and no print fills an order past its expiration, nor an order of a user whose
/// heartbeat has lapsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sweeps {
    #[default]
    All,
    /// Orders of ended markets, by venue time that is not in doubt; nothing by server time.
    ByVenueTime,
    None,
}

impl Sweeps {
    /// Whether heartbeats lapse, GTD orders expire, and requests leave memory whose ids count no longer.
    pub fn by_server_time(self) -> bool {
        self == Sweeps::All
    }

    /// Whether orders of ended markets end.
    pub fn by_venue_time(self) -> bool {
        self != Sweeps::None
    }
}

/// A read of one user.
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
        /// Closed ones of the answer at most; the later ones are pages of [`Episodes::Closed`].
        closed_max: usize,
    },
    Fills(FillFilter),
    /// A page of a traversal of the trade history.
    FillSpan(FillSpan),
    /// A page of a traversal of the positions.
    EpisodeSpan(EpisodeSpan),
    /// Rows of the venue-shaped order list (gateway/docs/venue-clients.md §7.3).
    VenueOrders(VenueFilter),
    /// Rows of the venue-shaped trade list (gateway/docs/venue-clients.md §7.4).
    VenueTrades(VenueFilter),
    /// The present value of these wallets, and their value at each full hour from `first` on.
    Equity {
        wallets: Wallets,
        /// Hours since 1970.
        first: u32,
    },
    /// The present value of these wallets, and their value at each full minute of the last 24 hours, where it is known
    /// (`shard/minutes.rs`), else at its full hours.
    EquityByMinute {
        wallets: Wallets,
    },
    /// Retained order facts numbered above `after`: at most `limit`, and at most
    /// [`crate::shard::facts::FACTS_PER_PAGE_MAX`].
    Facts {
        after: u64,
        limit: usize,
    },
    /// One back-test.
    Backtest([u8; 16]),
    /// The back-test of the request with this id.
    BacktestByRequest(String),
    /// Back-tests before `before`, newest first, at most `limit`.
    Backtests {
        before: Option<[u8; 16]>,
        limit: usize,
    },
    /// What was used in a month, `YYYYMM`.
    BacktestMeter(u32),
    /// Customer, subscriptions and purchases.
    Billing,
    /// What goes where, and how much is owed.
    Alerts,
    /// The oldest alert that is owed to a target, or by mail if `None`.
    OwedAlert(Option<u32>),
}

/// The wallets of a request (gateway/docs/accounts.md §3).
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

/// A page of a traversal of the trade history, newest first: fills at `from..=to` below `before`.
#[derive(Clone, Debug)]
pub struct FillSpan {
    pub wallets: Wallets,
    pub market: Option<MarketFilter>,
    pub from: Timestamp,
    pub to: Timestamp,
    pub before: Option<TradeId>,
    /// Rows of a page from memory, and of one that goes on with rows which have left it, if that is more: these are read
    /// elsewhere, where a long page delays no other user.
    pub limit: usize,
    pub limit_elsewhere: usize,
}

/// A page of a traversal of a user's episodes, highest id first: those below `before`.
#[derive(Clone, Debug)]
pub struct EpisodeSpan {
    pub wallets: Wallets,
    pub market: Option<MarketFilter>,
    pub which: Episodes,
    pub before: Option<PositionId>,
    /// As of a [`FillSpan`].
    pub limit: usize,
    pub limit_elsewhere: usize,
}

/// A selection of episodes of holding an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Episodes {
    All,
    Closed,
    /// Paid out by a resolution at `from..=to`.
    Settled {
        from: Timestamp,
        to: Timestamp,
    },
}

/// Filter and page of the venue-shaped lists; newest first, keyset (time, id) descending. The time is that of the
/// order's placement or of the fill. The caller answers an unknown market or token with an empty page, without a query.
#[derive(Clone, Debug)]
pub struct VenueFilter {
    pub wallets: Wallets,
    /// Orders only.
    pub statuses: Statuses,
    pub market: Option<MarketId>,
    pub instrument: Option<InstrumentId>,
    /// A single order or trade.
    pub only: Option<u64>,
    /// At or after this moment.
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

/// The beat that a client names as the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeatName {
    /// No earlier beat.
    First,
    Known([u8; 16]),
    /// A text that is not the name of a beat.
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
    /// A grant without an end (bulk users, the demo user).
    pub grant: Option<Tier>,
    /// In place of the tier's baseline of the API wallet.
    pub api_balance: Option<Cash>,
}

/// The stored part of a new secret.
#[derive(Clone, Debug)]
pub struct Secret {
    pub hash: [u8; 32],
    pub alias_hash: [u8; 32],
    /// The first 16 characters.
    pub prefix: String,
}

/// A key to issue (gateway/docs/keys.md §3). The caller has checked what needs lists or flags of the server.
#[derive(Clone, Debug)]
pub struct IssueKey {
    pub secret: Secret,
    pub name: Option<String>,
    /// `None`: the entitlement.
    pub tier: Option<Tier>,
    /// `None`: the default of the entitlement.
    pub permissions: Option<Permissions>,
    /// Refuse when the user has an active key.
    pub bootstrap: bool,
    /// The key that authorises the request; `None`: a session token, or the server itself.
    pub by: Option<KeyId>,
}

/// A new back-test.
#[derive(Clone, Debug)]
pub struct NewBacktest {
    /// A random UUID.
    pub id: [u8; 16],
    /// What was asked for, as JSON.
    pub spec: String,
    /// SHA-256 of the request.
    pub digest: [u8; 32],
    /// The id that the client gave it.
    pub request: Option<String>,
    /// Market hours in thousandths.
    pub charged: u64,
    /// The plan's back-tests a month, and its market hours in thousandths.
    pub jobs_max: u64,
    pub hours_max: u64,
    /// The key that authorises the request.
    pub by: KeyId,
}

/// How a back-test ended. `left` is the unprocessed part in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BacktestResult {
    Completed(Box<BacktestFigures>),
    Failed { error: String, left: u16 },
    Cancelled { left: u16 },
}

/// A new target of alerts. The caller has checked the address and the plan.
#[derive(Clone)]
pub struct NewAlertTarget {
    pub channel: Channel,
    pub url: String,
    /// Signs the deliveries.
    pub secret: Option<String>,
    pub label: Option<String>,
    pub kinds: AlertKinds,
}

/// Shows neither the secret nor the address, which is a secret too.
impl std::fmt::Debug for NewAlertTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NewAlertTarget").field(&(self.channel, &self.label, self.kinds)).finish()
    }
}

/// The changes of a target; `None`: as before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetChange {
    pub label: Option<Option<String>>,
    pub is_enabled: Option<bool>,
    pub kinds: Option<AlertKinds>,
}

/// What became of an attempt to deliver an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlertOutcome {
    Delivered,
    /// `gives_up`: there are no more attempts. `is_gone`: the target wants no more, and is switched off.
    Failed {
        error: String,
        gives_up: bool,
        is_gone: bool,
    },
}

/// One order request, native or venue-shaped.
#[derive(Clone, Debug)]
pub struct Placement {
    pub key: KeyId,
    /// The key's effective tier: decides the daily cap.
    pub tier: Tier,
    pub route: EntryRoute,
    pub request: Option<RequestIdentity>,
    /// EIP-712 hash of a signed order, where it becomes the order's id. One that the user already has is ignored, unless
    /// it is refused.
    pub order_hash: Option<[u8; 32]>,
    /// The order is refused if the user already has one with its hash.
    pub refuses_known_hash: bool,
    /// `Err`: the request is invalid in itself. Replay and daily cap are checked before it is refused for that.
    pub terms: Result<PlacementTerms, InvalidTerms>,
}

impl Placement {
    /// A request without an id, for an order without a hash.
    pub fn new(key: KeyId, tier: Tier, route: EntryRoute, terms: Result<PlacementTerms, InvalidTerms>) -> Placement {
        Placement { key, tier, route, request: None, order_hash: None, refuses_known_hash: false, terms }
    }
}

/// The caller found the request invalid and keeps the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTerms;

/// Idempotency of a request (gateway/docs/wire.md §11).
#[derive(Clone, Debug)]
pub struct RequestIdentity {
    pub client_order_id: String,
    /// SHA-256 over method, path and canonical body without `client_order_id`.
    pub digest: [u8; 32],
    pub source: IdSource,
}

/// The source of a request's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdSource {
    /// The field `client_order_id` only.
    Body,
    /// The header `Idempotency-Key`, with or without the field.
    Header,
    /// Derived from a signed order (gateway/docs/venue-clients.md §5.4): it is not shown as the order's client id, is
    /// valid for ten minutes, and never causes a refusal. No client can send its text.
    Implicit,
}

/// The terms of a request in integers, valid in themselves (engine/docs/orders.md §2, steps 1 to 4).
#[derive(Clone, Debug)]
pub struct PlacementTerms {
    pub wallet: Option<WalletId>,
    /// `None`: unknown market, outcome or token.
    pub instrument: Option<InstrumentId>,
    pub side: Side,
    pub order_type: OrderType,
    pub time_in_force: TimeInForce,
    pub size: Size,
    pub price: RequestedPrice,
    /// Unix seconds as sent; `None` = absent or not a number (both are `INVALID_ORDER_EXPIRATION` for GTD).
    pub expiration: Option<Timestamp>,
    pub post_only: bool,
}

/// The requested size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// Rounded down to 4 decimals; `rounded_from` is the text as sent if that removed digits.
    Shares { qty: Qty, rounded_from: Option<String> },
    /// USD to spend, market BUY only.
    Amount(Cash),
}

/// A requested price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedPrice {
    /// On the 10⁻⁴ grid, 1..=10 000.
    At(Price),
    /// A limit finer than 10⁻⁴: on no tick grid.
    OffGrid,
}

/// The answer to a command. The variant of an order is large and inline: it is by far the most frequent, and needs no
/// allocation.
#[derive(Clone, Debug)]
pub enum Answer {
    Done,
    Created(UserId),
    User(Box<UserView>),
    Key(Box<KeyView>),
    /// The replacement, and the end of the old key.
    Rotated {
        replacement: Box<KeyView>,
        old_expires_at: Timestamp,
    },
    Keys(Vec<KeyView>),
    Order(OrderView),
    Orders(OrderPage),
    /// In the order of the request; `None`: the user has no such order.
    SignedOrders(Vec<Option<OrderId>>),
    OrderHashes(Vec<Option<[u8; 32]>>),
    Batch(Vec<BatchEntry>),
    Cancelled(CancelledOrders),
    /// Lapses at this server time without another beat.
    Beating {
        lapses_at: Timestamp,
    },
    /// The last beat has another name; `None`: no venue heartbeat is armed.
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
    /// Part of an answer to a query, or to [`Command::NoteAlert`]: rows that it needs have left memory.
    Elsewhere(Box<Elsewhere>),
    /// A refusal with a killed order row (`X-Svc-Order-Id`), or the replay of one.
    Killed {
        reject: Reject,
        order: OrderView,
    },
    Refused(Reject),
    /// Nothing was decided: the command needs rows that left memory. It waits for no record.
    LookUp(Box<LookUp>),
    /// A cycle: counts of resting orders visited, filled and closed, and of those that rest in the shard now.
    Cycled {
        looked_at: u64,
        fills: u64,
        closed: u64,
        resting: u64,
    },
    /// A back-test; `is_replay`: it was created by an earlier request with the same id.
    Backtest {
        job: Box<Backtest>,
        is_replay: bool,
    },
    /// Newest first; `has_more`: there are older ones.
    Backtests {
        jobs: Vec<Backtest>,
        has_more: bool,
    },
    BacktestMeter(BacktestMeter),
    Billing(Box<Billing>),
    Billed(BillingOutcome),
    Alerts(Box<AlertsView>),
    AlertTarget(Box<AlertTarget>),
    /// Whether a notice is owed to something.
    Notified(bool),
    /// `None`: nothing is owed.
    OwedAlert(Option<Box<OwedAlert>>),
    Wallet(Box<Wallet>),
    /// A wallet was archived or reset.
    Emptied(Box<EmptiedWallet>),
    Equity(Box<EquityView>),
    /// A settlement: counts of positions paid out and orders expired.
    Settled {
        positions: u64,
        orders: u64,
    },
}

/// The result of one entry of a batch.
#[derive(Clone, Debug)]
pub enum BatchEntry {
    Placed(OrderView),
    Killed { reject: Reject, order: OrderView },
    Refused(Reject),
}
