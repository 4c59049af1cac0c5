//! The model's books: the feed's updates, as plain maps, and the rules of engine/docs/execution.md §3, §4, §9 and §10
//! in their simplest form.

use super::{cents, half_up};
use engine::book::BookSide;
use std::collections::BTreeMap;

/// Sizes by price, 10⁻⁶ shares by 10⁻⁴ USD.
pub type Levels = BTreeMap<u16, i128>;

/// The state of one token.
#[derive(Clone, Debug, Default)]
pub struct Token {
    pub bids: Levels,
    pub asks: Levels,
    /// Time of the last message; 0 = never.
    pub heard_at: u64,
    pub connection: u8,
    pub gap: bool,
    pub last_trade: Option<u16>,
    pub display: Option<u16>,
}

/// All books. A token's complement is the token with the last bit turned.
#[derive(Clone, Debug, Default)]
pub struct Books {
    pub tokens: BTreeMap<u32, Token>,
    alive: BTreeMap<u8, u64>,
    pub outage: bool,
    /// What each user took at each price.
    taken: BTreeMap<(u64, Place), Take>,
}

/// A price of one side, in terms of the market's first token: market, whether it is an ask, price. A bid for the other
/// token at the complementary price is the same.
type Place = (u32, bool, u16);

/// What a user took at a price, entry by entry: the first token's, then the second's.
#[derive(Clone, Copy, Debug, Default)]
struct Take {
    alone: [i128; 2],
    /// Of the single size that both entries show.
    both: i128,
    /// The venue has changed an entry since it was last compared, or it was never compared.
    news: [bool; 2],
    /// The entries were not known to be equal at the last take.
    differed: bool,
}

/// The relation of the two entries of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    Alone,
    /// Two sizes.
    Merged,
    /// One size, published twice.
    Same,
}

/// One price of one side of the effective book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub price: u16,
    pub own: i128,
    /// From the complement's other side; of mirrors the entry that adds nothing.
    pub mirrored: i128,
    pub pair: Pair,
}

/// Both sides of the effective book, best first.
#[derive(Clone, Debug, Default)]
pub struct Effective {
    pub bids: Vec<Level>,
    pub asks: Vec<Level>,
}

/// The quantity of a walk.
#[derive(Clone, Copy, Debug)]
pub enum Want {
    Shares(i128),
    /// 10⁻⁶ USD.
    Budget(i128),
}

/// The result of a walk.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// Price, shares of the own entry, shares of the mirrored one.
    pub rows: Vec<(u16, i128, i128)>,
    pub filled: i128,
    pub notional: i128,
    pub fee: i128,
    pub complete: bool,
}

/// The taker fee of one level, half up to 10⁻⁵ USD (engine/docs/execution.md §5).
pub fn fee(qty: i128, price: u16, rate: u32) -> i128 {
    let price = i128::from(price);
    10 * half_up(qty * i128::from(rate) * price * (10_000 - price), 10_i128.pow(13))
}

/// price × quantity, half up to 10⁻⁶ USD.
pub fn notional(price: u16, qty: i128) -> i128 {
    half_up(i128::from(price) * qty, 10_000)
}

/// Shares down to 4 decimals.
pub fn four_decimals(qty: i128) -> i128 {
    qty - qty % 100
}

impl Effective {
    pub fn side(&self, side: BookSide) -> &[Level] {
        match side {
            BookSide::Bid => &self.bids,
            BookSide::Ask => &self.asks,
        }
    }

    pub fn best(&self, side: BookSide) -> Option<u16> {
        self.side(side).first().map(|level| level.price)
    }
}

/// Whether a level may be taken within a bound; equality counts.
pub fn within(side: BookSide, price: u16, bound: u16) -> bool {
    match side {
        BookSide::Bid => price >= bound,
        BookSide::Ask => price <= bound,
    }
}

/// The feed's half.
impl Books {
    /// A message about a token. While its view is broken, only a snapshot makes it fresh.
    fn hear(&mut self, token: u32, connection: u8, now: u64) -> &mut Token {
        self.alive(connection, now);
        let token = self.tokens.entry(token).or_default();
        if !token.gap || token.heard_at == 0 {
            token.heard_at = token.heard_at.max(now);
        }
        token.connection = connection;
        token
    }

    pub fn alive(&mut self, connection: u8, now: u64) {
        let alive = self.alive.entry(connection).or_default();
        *alive = now.max(*alive);
    }

    /// The whole book of a token. Nothing of it is taken yet.
    pub fn snapshot(&mut self, token: u32, bids: Levels, asks: Levels, connection: u8, now: u64) {
        for ((_, (market, ..)), take) in &mut self.taken {
            take.news[token as usize % 2] |= *market == token / 2;
        }
        self.tokens.entry(token).or_default().gap = false;
        let known = self.hear(token, connection, now);
        (known.bids, known.asks) = (bids, asks);
    }

    /// One level, 0 = gone. Nothing of it is taken yet.
    pub fn level(&mut self, token: u32, side: BookSide, price: u16, size: i128, connection: u8, now: u64) {
        let changed = place(token, side == BookSide::Ask, price);
        for ((_, at), take) in &mut self.taken {
            take.news[token as usize % 2] |= *at == changed;
        }
        let known = self.hear(token, connection, now);
        let levels = if side == BookSide::Ask { &mut known.asks } else { &mut known.bids };
        levels.insert(price, size);
        levels.retain(|_, size| *size > 0);
    }

    pub fn trade(&mut self, token: u32, price: u16, connection: u8, now: u64) {
        self.hear(token, connection, now).last_trade = Some(price);
    }
}

/// What orders see.
impl Books {
    fn token(&self, token: u32) -> Token {
        self.tokens.get(&token).cloned().unwrap_or_default()
    }

    /// Own levels merged with the complement's (engine/docs/execution.md §3).
    pub fn effective(&self, token: u32) -> Effective {
        let (own, other) = (self.token(token), self.token(token ^ 1));
        let mirror = |levels: &Levels| levels.iter().map(|(price, size)| (10_000 - price, *size)).collect::<Levels>();
        let (other_bids, other_asks) = (mirror(&other.asks), mirror(&other.bids));
        let five = |levels: &Levels, descending: bool| -> Vec<(u16, i128)> {
            let mut rows: Vec<(u16, i128)> = levels.iter().map(|(price, size)| (*price, *size)).collect();
            if descending {
                rows.reverse();
            }
            rows.truncate(5);
            rows
        };
        let mirrored_bids = five(&own.bids, true) == five(&other_bids, true);
        let mirrored_asks = five(&own.asks, false) == five(&other_asks, false);
        let size = |levels: &Levels, price: u16| levels.get(&price).copied().unwrap_or(0);
        let merge = |own: &Levels, other: &Levels| -> Vec<Level> {
            let prices: std::collections::BTreeSet<u16> = own.keys().chain(other.keys()).copied().collect();
            let level =
                |price| Level { price, own: size(own, price), mirrored: size(other, price), pair: Pair::Merged };
            prices.into_iter().map(level).collect()
        };
        let alone = |own: &Levels, other: &Levels, mirrors: bool| -> Vec<Level> {
            let level = |(price, own): (&u16, &i128)| match mirrors {
                true => Level { price: *price, own: *own, mirrored: size(other, *price), pair: Pair::Same },
                false => Level { price: *price, own: *own, mirrored: 0, pair: Pair::Alone },
            };
            own.iter().map(level).collect()
        };
        let alone = Effective {
            bids: alone(&own.bids, &other_bids, mirrored_bids).into_iter().rev().collect(),
            asks: alone(&own.asks, &other_asks, mirrored_asks),
        };
        let merged = Effective {
            bids: merge(&own.bids, &other_bids).into_iter().rev().collect(),
            asks: merge(&own.asks, &other_asks),
        };
        let crossed =
            matches!((merged.best(BookSide::Bid), merged.best(BookSide::Ask)), (Some(bid), Some(ask)) if bid >= ask);
        if crossed {
            return alone;
        }
        Effective {
            bids: if mirrored_bids { alone.bids } else { merged.bids },
            asks: if mirrored_asks { alone.asks } else { merged.asks },
        }
    }

    /// Age of the quote in µs; `None` if neither token ever had a message.
    pub fn age(&self, token: u32, now: u64) -> Option<u64> {
        let heard = [token, token ^ 1].into_iter().map(|token| self.token(token)).find(|known| known.heard_at != 0)?;
        let alive = if heard.gap { 0 } else { self.alive.get(&heard.connection).copied().unwrap_or(0) };
        Some(now.saturating_sub(heard.heard_at.max(alive)))
    }

    /// The displayed price of a token, 10⁻⁶ USD (engine/docs/account.md §2).
    pub fn displayed(&self, token: u32) -> Option<i128> {
        let book = self.effective(token);
        let known = self.token(token);
        match (book.best(BookSide::Bid), book.best(BookSide::Ask)) {
            (Some(bid), Some(ask)) if i32::from(ask) - i32::from(bid) <= 1_000 => {
                Some((i128::from(bid) + i128::from(ask)) * 50)
            }
            _ => known.last_trade.or(known.display).map(cents),
        }
    }

    /// Walks one side of the effective book for one user, without changing it.
    pub fn walk(&self, user: u64, token: u32, side: BookSide, want: Want, bound: u16, rate: u32) -> Walk {
        let mut walk = Walk::default();
        // 10⁻¹⁰ USD.
        let (mut spent, mut done) = (0, false);
        let book = self.effective(token);
        for level in book.side(side).iter().filter(|level| within(side, level.price, bound)) {
            let price = i128::from(level.price);
            let (own, mirrored) = self.left(user, token, side, level);
            let here = four_decimals(own + mirrored);
            let (wanted, one_more) = match want {
                Want::Shares(shares) => (shares - walk.filled, 1),
                Want::Budget(budget) => (four_decimals((budget * 10_000 - spent) / price), 100),
            };
            let qty = here.min(wanted);
            if wanted < one_more {
                done = true;
                break;
            }
            if qty > 0 {
                walk.rows.push((level.price, qty.min(own), (qty - own).max(0)));
                walk.filled += qty;
                spent += price * qty;
                walk.fee += fee(qty, level.price, rate);
                done = qty == wanted;
            }
        }
        walk.notional = half_up(spent, 10_000);
        walk.complete = done && walk.filled > 0;
        walk
    }

    /// What is left to a user of both entries of a level.
    fn left(&self, user: u64, token: u32, side: BookSide, level: &Level) -> (i128, i128) {
        let added = if level.pair == Pair::Merged { level.mirrored } else { 0 };
        let Some(take) = self.taken.get(&(user, place(token, side == BookSide::Ask, level.price))) else {
            return (level.own, added);
        };
        let own = token as usize % 2;
        match level.pair {
            Pair::Same => ((level.own - take.of_both(own, level)).max(0), 0),
            _ => ((level.own - take.of_one(own)).max(0), (added - take.of_one(1 - own)).max(0)),
        }
    }

    /// What a user took counts until the venue's next change of it.
    pub fn deplete(&mut self, user: u64, token: u32, side: BookSide, walk: &Walk) {
        let book = self.effective(token);
        let own_half = token as usize % 2;
        for (price, own, mirrored) in &walk.rows {
            let level = book.side(side).iter().find(|level| level.price == *price).expect("it was walked");
            let first_seen = |half: usize, other: i128| {
                let mut take = Take::default();
                take.news[1 - half] = other == 0 && level.pair != Pair::Same;
                take
            };
            let at = (user, place(token, side == BookSide::Ask, *price));
            if level.pair == Pair::Same {
                let take = self.taken.entry(at).or_default();
                let both = take.of_both(own_half, level) + own;
                *take = Take { both, differed: level.own != level.mirrored, ..Take::default() };
                continue;
            }
            for (half, qty, other) in [(own_half, own, level.mirrored), (1 - own_half, mirrored, level.own)] {
                if *qty > 0 {
                    let size = if half == own_half { level.own } else { level.mirrored };
                    let take = self.taken.entry(at).or_insert_with(|| first_seen(half, other));
                    take.renew(half);
                    take.alone[half] += qty;
                    if other > 0 {
                        take.renew(1 - half);
                    }
                    take.differed = other != size;
                }
            }
        }
    }
}

impl Take {
    fn of_one(&self, half: usize) -> i128 {
        if self.news[half] { 0 } else { self.alone[half] + self.both }
    }

    /// Of one size in two entries. A change of either changes both, except an entry that only catches up with the
    /// other.
    fn of_both(&self, own: usize, level: &Level) -> i128 {
        let catches_up = self.differed && level.own == level.mirrored;
        match (self.news[own], self.news[1 - own]) {
            (false, false) => self.both + self.alone[0] + self.alone[1],
            (false, true) if catches_up => self.both + self.alone[own],
            (true, false) if catches_up => self.both + self.alone[1 - own],
            _ => 0,
        }
    }

    /// An entry that is compared again: changes since then make it whole.
    fn renew(&mut self, half: usize) {
        if std::mem::take(&mut self.news[half]) {
            self.alone[1 - half] += self.both;
            (self.alone[half], self.both) = (0, 0);
        }
    }
}

fn place(token: u32, is_ask: bool, price: u16) -> Place {
    match token.is_multiple_of(2) {
        true => (token / 2, is_ask, price),
        false => (token / 2, !is_ask, 10_000 - price),
    }
}
