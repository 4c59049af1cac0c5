//! The events of a world, drawn from its seed in advance: a list of steps that are meaningful after any earlier steps
//! ("cancel the third open order, if there is one"), so that any of them can be removed when a failure is shortened.

use crate::store::MovePoint;
use engine::command::IdSource;
use engine::market::terms::MarketState;
use engine::order::{Side, Status, TimeInForce};
use engine::user::{Permissions, Tier};
use tests::chance::Chance;
use wal::Point;
use wal::fault::Call;

/// Users and markets of a world.
pub const USERS: u64 = 5;
pub const MARKETS: u64 = 12;

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// A client sends something. `late_us`: how long ago its request was read.
    Ask {
        user: u64,
        action: Action,
        late_us: u64,
    },
    Feed(Feed),
    /// The matching cycle is due.
    Cycle,
    /// One shard takes its turn, or all of them.
    Turn(usize),
    TurnAll,
    Commit,
    Sync,
    /// One spare is made, or segments that the snapshots cover are recycled.
    Prepare,
    /// The keeper of the snapshots takes a turn.
    Keep,
    /// A reader of rows that have left memory serves one of the requests that wait, or all of them.
    Read(usize),
    ReadAll,
    /// Server time advances, µs.
    Wait(u64),
    /// One shard sees a clock that went back, µs.
    Back {
        shard: usize,
        us: u64,
    },
    Disk(Disk),
    Die(Death),
    /// The process dies at the n-th passage of a point from now on.
    DieAt {
        point: Point,
        nth: i64,
        death: Death,
    },
    /// The same for a point of a move of ended rows.
    DieAtMove {
        point: MovePoint,
        nth: i64,
        death: Death,
    },
    /// A clean stop and a start.
    Stop {
        shards: usize,
    },
}

/// How the process ends and starts again.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// A power loss; else only the process is killed.
    pub power: bool,
    /// Shards of the next life.
    pub shards: usize,
    /// Recovery is killed too, at the n-th passage of one of its points.
    pub again_at: Option<i64>,
}

/// Faults of the disk.
#[derive(Clone, Copy, Debug)]
pub enum Disk {
    /// A call fails, after `after` others.
    Fail(Call, u64),
    /// Room for this many more bytes.
    Full(u64),
    Roomy,
}

/// A client's request. Numbers select among existing objects.
#[derive(Clone, Debug)]
pub enum Action {
    Create {
        grant: Option<Tier>,
        dollars: Option<i64>,
    },
    Grant {
        tier: Tier,
        days: Option<u64>,
    },
    Issue {
        tier: Option<Tier>,
        permissions: Option<Permissions>,
        bootstrap: bool,
    },
    Rename(usize),
    Rotate(usize),
    Revoke(usize),
    Use(usize),
    Place(Wish),
    Batch(Vec<Wish>),
    /// An earlier placement once more, with another body where `changed`.
    Again {
        back: usize,
        changed: bool,
    },
    Cancel(usize),
    CancelAll {
        everywhere: bool,
    },
    CancelMarket {
        market: Option<u32>,
        token: Option<u32>,
    },
    Beat {
        label: u8,
        interval_ms: u32,
    },
    EndBeats,
    /// Wallets are named by their number among the user's.
    OpenWallet,
    NameWallet(usize),
    ArchiveWallet(usize),
    ResetWallet(usize),
    ResetApi(usize),
    /// A top-up of a wallet, now and then a second time.
    TopUp(usize),
    /// The return of a payment, in part or whole.
    Refund(usize),
    Look(Look),
}

/// A client's query.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    Order(usize),
    ByClientId(u64),
    Orders { status: Option<Status>, side: Option<Side>, market: Option<u32>, offset: usize, limit: usize },
    Fills { side: Option<Side>, offset: usize, limit: usize },
    Account { everywhere: bool },
    Positions { open: Option<bool> },
    Equity { wallet: usize, hours: u32 },
    Facts { after: u64, limit: usize },
    Keys,
    User,
}

/// A client's order.
#[derive(Clone, Debug)]
pub struct Wish {
    pub token: u32,
    pub sell: bool,
    pub at_market: bool,
    pub time_in_force: TimeInForce,
    /// Ticks better (for getting filled) than the best price of the other side; negative: worse.
    pub ticks: i32,
    /// 10⁻⁴ shares; `None`: all that can be sold.
    pub quantity: Option<u64>,
    /// USD × 100 instead of shares.
    pub amount: Option<i64>,
    pub lives_us: u64,
    pub post_only: bool,
    pub id: Option<(u64, IdSource)>,
    /// Not in the API wallet but in one of the others, by its number.
    pub in_wallet: Option<usize>,
    /// An order that must be refused.
    pub oddity: Option<Oddity>,
    /// Stands for the fields of the body that the engine ignores.
    pub body: u64,
}

impl Wish {
    /// The number of the signed order that it is, if it is one: of several wishes with one number the first that is placed
    /// has its hash.
    pub fn signed(&self) -> Option<u64> {
        self.body.is_multiple_of(4).then_some(self.body / 4 % SIGNED)
    }
}

/// The fault of an order.
#[derive(Clone, Copy, Debug)]
pub enum Oddity {
    InvalidTerms,
    NoQuantity,
    TooMany,
    OffGrid,
    BetweenTicks,
    NoMarket,
    ForeignWallet,
    Expired,
}

/// A message of the venue.
#[derive(Clone, Debug)]
pub enum Feed {
    List(u64),
    /// A whole book drawn from `seed`; `pair`: the complement's is its mirror, sent in the same frame.
    Book {
        token: u32,
        seed: u64,
        pair: bool,
    },
    /// Some levels.
    Change {
        token: u32,
        seed: u64,
    },
    Trade {
        token: u32,
        seed: u64,
    },
    Tick {
        market: u32,
        tick: u16,
    },
    State {
        market: u32,
        state: MarketState,
    },
    End {
        market: u32,
        in_us: u64,
    },
    Resolve {
        market: u32,
        how: u8,
    },
    Gap {
        token: u32,
    },
    Alive {
        connection: u8,
    },
    Outage(bool),
    Display {
        token: u32,
        price: u16,
    },
}

/// Signed orders of a user.
const SIGNED: u64 = 60;

const SECOND: u64 = 1_000_000;

/// A world: the same seed gives the same steps. `calm`: nothing that depends on the scheduling of shards or on what the
/// disk loses; killed processes recover completely.
pub fn steps(seed: u64, count: usize, calm: bool) -> Vec<Step> {
    let mut chance = Chance::seeded(seed);
    let mut steps = Vec::new();
    for market in 0..MARKETS {
        steps.push(Step::Feed(Feed::List(market)));
        // Written, released, published.
        steps.extend([Step::Commit, Step::Sync, Step::Commit]);
    }
    // Spare segments: without them orders are refused.
    steps.extend([Step::Prepare, Step::Prepare, Step::Keep, Step::Commit]);
    for user in 1..=USERS {
        let grant = *chance.pick(&[None, None, Some(Tier::Pro), Some(Tier::Enterprise)]);
        let dollars = *chance.pick(&[None, Some(40), Some(5_000), Some(5_000)]);
        steps.push(Step::Ask { user, action: Action::Create { grant, dollars }, late_us: 0 });
    }
    for token in 0..2 * MARKETS as u32 {
        steps.push(Step::Feed(Feed::Book { token, seed: chance.draw(), pair: token % 6 == 0 }));
    }
    steps.extend([Step::TurnAll, Step::Commit, Step::Sync, Step::Commit]);
    while steps.len() < count {
        // Interest moves on from market to market.
        let hot = 4 * (steps.len() / 250) as u32;
        let step = step(&mut chance, calm, hot);
        let slept = matches!(step, Step::Wait(us) if us > 20 * SECOND);
        let asks = matches!(step, Step::Ask { .. } | Step::Cycle);
        steps.push(step);
        if slept && chance.percent(80) {
            // The venue was connected all the time.
            (0..3).for_each(|connection| steps.push(Step::Feed(Feed::Alive { connection })));
        }
        // Mostly a command is taken immediately; sometimes several wait.
        if calm {
            // Everything is finished, so that the assignment of shards to threads makes no difference.
            (0..4).for_each(|_| steps.extend([Step::TurnAll, Step::Commit, Step::ReadAll]));
        } else if asks && chance.percent(60) {
            steps.push(Step::TurnAll);
            if chance.percent(60) {
                steps.push(Step::Commit);
            }
        }
        if chance.percent(20) {
            // Segments roll, snapshots are made, and rows leave with them.
            steps.push(Step::Prepare);
            if calm {
                // Otherwise syncs are drawn.
                steps.push(Step::Sync);
            }
            steps.push(Step::Keep);
        }
        if !calm && chance.percent(30) {
            steps.push(Step::Read(chance.below(8)));
        }
    }
    steps
}

fn step(chance: &mut Chance, calm: bool, hot: u32) -> Step {
    match chance.below(1_000) {
        0..500 => Step::Ask {
            // Now and then an unknown user.
            user: if chance.percent(1) { USERS + 1 } else { 1 + chance.below(USERS as usize) as u64 },
            action: action(chance, hot),
            late_us: if chance.percent(2) { chance.below(4_000_000) as u64 } else { 0 },
        },
        500..650 => Step::Feed(feed(chance, hot)),
        650..700 => Step::Cycle,
        700..740 => Step::Wait(wait(chance)),
        740..900 if calm => Step::TurnAll,
        740..790 => Step::Turn(chance.below(3)),
        790..830 => Step::Commit,
        830..900 => Step::Sync,
        900..920 => Step::Prepare,
        920..940 => Step::Keep,
        940..950 => Step::Back { shard: chance.below(3), us: chance.below(10_000_000) as u64 },
        950..965 if !calm => Step::Disk(match chance.below(6) {
            0 => Disk::Fail(*chance.pick(&[Call::Sync, Call::Sync, Call::SyncDirectory, Call::Rename]), 0),
            1 => Disk::Fail(
                *chance.pick(&[Call::Create, Call::Write, Call::Reserve, Call::Read]),
                chance.below(4) as u64,
            ),
            2..=4 => Disk::Full(chance.below(2) as u64 * 20_000),
            _ => Disk::Roomy,
        }),
        965..970 if !calm => Step::DieAt {
            point: *chance.pick(&Point::ALL),
            nth: 1 + chance.below(6) as i64,
            death: death(chance, calm),
        },
        970..975 if !calm => Step::DieAtMove {
            point: *chance.pick(&MovePoint::ALL),
            nth: 1 + chance.below(4) as i64,
            death: death(chance, calm),
        },
        975..980 => Step::Die(death(chance, calm)),
        985..987 => Step::Stop { shards: 1 + chance.below(3) },
        _ => Step::Wait(1_000),
    }
}

fn death(chance: &mut Chance, calm: bool) -> Death {
    Death {
        power: chance.percent(60) && !calm,
        shards: 1 + chance.below(3),
        again_at: (!calm && chance.percent(20)).then(|| 1 + chance.below(4) as i64),
    }
}

fn wait(chance: &mut Chance) -> u64 {
    match chance.below(20) {
        0..12 => 1 + chance.below(300_000) as u64,
        12..16 => chance.below(5 * SECOND as usize) as u64,
        16 => chance.below(90 * SECOND as usize) as u64,
        17 | 18 => 3_600 * SECOND,
        _ if chance.percent(25) => 25 * 3_600 * SECOND,
        _ => 60 * SECOND,
    }
}

fn action(chance: &mut Chance, hot: u32) -> Action {
    let nth = chance.below(64);
    match chance.below(100) {
        0..43 => Action::Place(wish(chance, hot)),
        43..48 => match chance.below(15) {
            0..4 => Action::OpenWallet,
            4..6 => Action::NameWallet(nth),
            6..8 => Action::ArchiveWallet(nth),
            8..10 => Action::ResetWallet(nth),
            10 | 11 => Action::TopUp(nth),
            12 => Action::Refund(nth),
            _ => Action::ResetApi(nth),
        },
        48..54 => Action::Batch((0..1 + chance.below(6)).map(|_| wish(chance, hot)).collect()),
        54..61 => Action::Again { back: chance.below(8), changed: chance.percent(25) },
        61..70 => Action::Cancel(nth),
        70 => Action::CancelAll { everywhere: chance.percent(50) },
        71 => Action::CancelMarket {
            market: chance.percent(70).then(|| chance.below(MARKETS as usize) as u32),
            token: chance.percent(40).then(|| chance.below(2 * MARKETS as usize) as u32),
        },
        72..75 => Action::Beat { label: chance.below(3) as u8, interval_ms: *chance.pick(&[1_000, 5_000, 60_000]) },
        75 => Action::EndBeats,
        76 => Action::Create { grant: None, dollars: None },
        77 => Action::Grant { tier: *chance.pick(&TIERS), days: chance.percent(60).then(|| chance.below(3) as u64) },
        78..83 => Action::Issue {
            tier: chance.percent(20).then(|| *chance.pick(&TIERS)),
            permissions: *chance.pick(&[None, Some(Permissions::Read), Some(Permissions::ReadTrade)]),
            bootstrap: chance.percent(10),
        },
        83 => {
            if chance.percent(40) {
                Action::Rename(nth)
            } else {
                Action::Rotate(nth)
            }
        }
        84 => Action::Rotate(nth),
        85 => Action::Revoke(nth),
        86 | 87 => Action::Use(nth),
        _ => Action::Look(look(chance)),
    }
}

const TIERS: [Tier; 4] = [Tier::Free, Tier::Pro, Tier::ProPlus, Tier::Enterprise];

fn look(chance: &mut Chance) -> Look {
    let side = *chance.pick(&[None, None, Some(Side::Buy), Some(Side::Sell)]);
    match chance.below(11) {
        10 => Look::Facts { after: chance.below(200) as u64, limit: 1 + chance.below(100) },
        9 => Look::Equity { wallet: chance.below(8), hours: chance.below(60) as u32 },
        0 | 1 => Look::Order(chance.below(64)),
        2 => Look::ByClientId(chance.below(60) as u64),
        3 => Look::Orders {
            status: *chance.pick(&[None, Some(Status::Pending), Some(Status::Filled), Some(Status::Cancelled)]),
            side,
            market: chance.percent(20).then(|| chance.below(MARKETS as usize) as u32),
            offset: chance.below(4),
            limit: 1 + chance.below(20),
        },
        4 => Look::Fills { side, offset: chance.below(4), limit: 1 + chance.below(20) },
        5 => Look::Account { everywhere: chance.percent(50) },
        6 => Look::Positions { open: *chance.pick(&[None, Some(true), Some(false)]) },
        7 => Look::Keys,
        _ => Look::User,
    }
}

fn wish(chance: &mut Chance, hot: u32) -> Wish {
    let token = token(chance, hot);
    let at_market = chance.percent(35);
    let (sell, odd) = (chance.percent(42), chance.percent(5));
    use TimeInForce::{Fak, Fok, Gtc, Gtd, Ioc};
    let usual = if at_market { [Gtc, Fok, Fok, Fak, Ioc] } else { [Gtc, Gtc, Gtc, Gtd, Gtd] };
    let time_in_force =
        if chance.percent(85) { *chance.pick(&usual) } else { *chance.pick(&[Gtc, Gtd, Fok, Fak, Ioc]) };
    let oddities = [
        Oddity::InvalidTerms,
        Oddity::NoQuantity,
        Oddity::TooMany,
        Oddity::OffGrid,
        Oddity::BetweenTicks,
        Oddity::NoMarket,
        Oddity::ForeignWallet,
        Oddity::Expired,
    ];
    let quantity = match chance.below(10) {
        0..5 => 50_000 + chance.below(150_000) as u64,
        5..7 => 10_000 * (1 + chance.below(30) as u64),
        7 => chance.below(60_000) as u64,
        8 => 1_000_000 + chance.below(5_000_000) as u64,
        _ => 100_000,
    };
    Wish {
        token,
        sell,
        at_market,
        time_in_force,
        ticks: *chance.pick(&[-30, -8, -4, -3, -2, -2, -1, -1, 0, 0, 1, 2, 3, 6, 20]),
        quantity: (!sell || chance.percent(50)).then_some(quantity),
        amount: (!sell && at_market && chance.percent(40)).then(|| 1 + chance.below(3_000) as i64),
        lives_us: chance.below(20 * SECOND as usize) as u64,
        post_only: chance.percent(12),
        id: chance.percent(45).then(|| {
            let source = *chance.pick(&[IdSource::Body, IdSource::Body, IdSource::Header, IdSource::Implicit]);
            (chance.below(60) as u64, source)
        }),
        in_wallet: chance.percent(15).then(|| chance.below(8)),
        oddity: odd.then(|| *chance.pick(&oddities)),
        body: chance.draw(),
    }
}

/// Mostly one of the current markets, so that positions and depletion build up.
fn token(chance: &mut Chance, hot: u32) -> u32 {
    let tokens = 2 * MARKETS as u32;
    if chance.percent(75) { (hot + chance.below(6) as u32) % tokens } else { chance.below(tokens as usize) as u32 }
}

const ACTIVE: MarketState = MarketState::Active;

fn feed(chance: &mut Chance, hot: u32) -> Feed {
    let token = token(chance, hot);
    let market = chance.below(MARKETS as usize) as u32;
    let seed = chance.draw();
    match chance.below(100) {
        0..22 => Feed::Book { token, seed, pair: chance.percent(30) },
        22..68 => Feed::Change { token, seed },
        68..74 => Feed::Trade { token, seed },
        74..76 => Feed::Tick { market, tick: *chance.pick(&[1_000, 100, 10, 1]) },
        76..80 => Feed::State {
            market,
            state: *chance.pick(&[MarketState::Halted, MarketState::Closed, ACTIVE, ACTIVE, ACTIVE, ACTIVE]),
        },
        80..83 => Feed::End {
            market,
            in_us: *chance.pick(&[0, 10 * SECOND, 3_600 * SECOND, 30 * 3_600 * SECOND, 90_000 * SECOND]),
        },
        83..85 => Feed::Resolve { market, how: chance.below(3) as u8 },
        85..87 => Feed::Gap { token },
        87..94 => Feed::Alive { connection: chance.below(3) as u8 },
        94..97 => Feed::Outage(chance.percent(20)),
        97 => Feed::List(chance.below(MARKETS as usize + 4) as u64),
        _ => Feed::Display { token, price: 1 + chance.below(9_999) as u16 },
    }
}
