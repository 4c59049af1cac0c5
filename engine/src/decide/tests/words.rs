//! The vocabulary of a scenario: orders, markets, books, flags, numbers.

use super::world::World;
use crate::amount::{Bps, Cash, Price, Qty, TickSize};
use crate::book::BookSide;
use crate::book::publish;
use crate::command::{IdSource, InvalidTerms, Placement, PlacementTerms, RequestIdentity, RequestedPrice, Size};
use crate::fee::FeeRounding;
use crate::id::{InstrumentId, KeyId, MarketId, Outcome, WalletId};
use crate::market::mutation::MarketMutation;
use crate::market::terms::{Asset, Category, FeeSchedule, Interval, Listing, MarketState, UpDown, Venue};
use crate::order::{EntryRoute, OrderType, Side, TimeInForce};
use crate::realism::{FillModel, FillTerms, RealismSet};
use crate::rules::FeeRates;
use crate::time::{HOUR, MILLISECOND, MINUTE, SECOND, Timestamp};
use crate::user::{Tier, WalletKind};
use std::sync::Arc;

impl World {
    /// `buy TOKEN SIZE market|limit PRICE [words]`; see the body for the options.
    pub(super) fn placement(&self, side: &str, words: &[&str]) -> Placement {
        let side = if side == "buy" { Side::Buy } else { Side::Sell };
        let order_type = if words[2] == "market" { OrderType::Market } else { OrderType::Limit };
        let mut terms = PlacementTerms {
            wallet: None,
            instrument: (words[0] != "?").then(|| token(words[0])),
            side,
            order_type,
            time_in_force: if order_type == OrderType::Market { TimeInForce::Fok } else { TimeInForce::Gtc },
            size: match words[1].strip_prefix('$') {
                Some(amount) => Size::Amount(cash(amount)),
                None => Size::Shares { qty: qty(words[1]), rounded_from: None },
            },
            price: if words[3] == "off" { RequestedPrice::OffGrid } else { RequestedPrice::At(price(words[3])) },
            expiration: None,
            post_only: false,
        };
        let (mut tier, mut route, mut invalid, mut once) = (self.tier, EntryRoute::Native, false, false);
        let (mut id, mut signed, mut source, mut body, mut key) = (None, None, IdSource::Body, 1, KeyId(5));
        for word in &words[4..] {
            match word.split_once('=') {
                Some(("exp", at)) => {
                    terms.expiration = Some(match at.strip_prefix('-') {
                        Some(before) => Timestamp(self.now.0 - span(before)),
                        None => self.now.plus(span(at.trim_start_matches('+'))),
                    });
                }
                Some(("id", text)) => id = Some(text.to_owned()),
                Some(("by", n)) => key = self.key(n),
                Some(("signed", n)) => signed = Some([number(n) as u8; 32]),
                Some(("body", n)) => body = number(n) as u8,
                Some(("from", "main")) => {
                    terms.wallet = self.the_user().wallet_of(WalletKind::Main).map(|wallet| wallet.id);
                }
                Some(("from", n)) if n.parse::<usize>().is_ok() => terms.wallet = Some(self.wallet(n)),
                Some(("from", _)) => terms.wallet = Some(WalletId(4_711)),
                Some(("rounded", text)) => {
                    if let Size::Shares { rounded_from, .. } = &mut terms.size {
                        *rounded_from = Some(text.to_owned());
                    }
                }
                _ => match *word {
                    "gtc" => terms.time_in_force = TimeInForce::Gtc,
                    "gtd" => terms.time_in_force = TimeInForce::Gtd,
                    "fok" => terms.time_in_force = TimeInForce::Fok,
                    "fak" => terms.time_in_force = TimeInForce::Fak,
                    "ioc" => terms.time_in_force = TimeInForce::Ioc,
                    "post" => terms.post_only = true,
                    "header" => source = IdSource::Header,
                    "implicit" => source = IdSource::Implicit,
                    "venue" => route = EntryRoute::Venue,
                    "pro" => tier = Tier::Pro,
                    "invalid" => invalid = true,
                    "once" => once = true,
                    other => panic!("no such word: {other}"),
                },
            }
        }
        let terms = if invalid { Err(InvalidTerms) } else { Ok(terms) };
        Placement {
            request: id.map(|client_order_id| RequestIdentity { client_order_id, digest: [body; 32], source }),
            order_hash: signed,
            refuses_known_hash: once,
            ..Placement::new(key, tier, route, terms)
        }
    }

    pub(super) fn list(&mut self, words: &[&str]) -> String {
        let market = number(words[0]);
        let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let end = option("end").map(|after| self.now.plus(span(after)));
        let interval =
            option("updown").map(|name| Interval::ALL.into_iter().find(|known| known.name() == name).expect("known"));
        let listing = Listing {
            venue: if option("venue") == Some("kalshi") { Venue::Kalshi } else { Venue::Synthetic },
            venue_market_id: market.to_string(),
            condition: format!("0x{market:064x}"),
            tokens: [(market * 2 + 100).to_string(), (market * 2 + 101).to_string()],
            outcomes: ["Yes".to_owned(), "No".to_owned()],
            slug: format!("market-{market}"),
            question: format!("Market {market}?"),
            description: None,
            image: None,
            label: None,
            category: Category::named(words[1]).unwrap_or(Category::Unknown),
            tags: Vec::new(),
            event: None,
            tick: TickSize(price(words[2]).0),
            min_order_size: None,
            neg_risk: false,
            start: None,
            end,
            updown: interval.map(|interval| UpDown {
                asset: Asset::Btc,
                interval,
                start: self.now,
                end: self.now.plus(300 * SECOND),
            }),
            sports: false,
        };
        let facts = self.markets.list(&listing, MarketState::Active, self.now, self.now);
        self.publish(facts)
    }

    pub(super) fn publish(&mut self, facts: impl IntoIterator<Item = MarketMutation>) -> String {
        for fact in facts {
            self.markets.apply(&fact);
            publish(&fact, &self.catalog, &mut self.writer);
        }
        String::new()
    }

    /// `fees MARKET RATE EXPONENT takers|all REBATE`, or `fees MARKET none`: what the market states.
    pub(super) fn state_fees(&mut self, words: &[&str]) -> String {
        let schedule = (words[1] != "none").then(|| FeeSchedule {
            rate: micros(words[1]) as u32,
            exponent: number(words[2]) as u16,
            taker_only: words[3] == "takers",
            rebate_rate: micros(words[4]) as u32,
        });
        let fact = self.markets.fees(MarketId(number(words[0]) as u32), schedule, self.now);
        self.publish(fact)
    }

    /// `book TOKEN bids P×S … asks P×S …`.
    pub(super) fn book(&mut self, words: &[&str]) -> String {
        let (mut bids, mut asks, mut side) = (Vec::new(), Vec::new(), None);
        for word in &words[1..] {
            match (*word, side) {
                ("bids", _) => side = Some(BookSide::Bid),
                ("asks", _) => side = Some(BookSide::Ask),
                (text, Some(BookSide::Bid)) => bids.push(level(text)),
                (text, _) => asks.push(level(text)),
            }
        }
        let (token, now) = (token(words[0]), self.books.venue_now(self.now));
        self.writer.frame(0, now, |frame| frame.snapshot(token, &bids, &asks, now, None));
        String::new()
    }

    pub(super) fn flag(&mut self, name: &str, on: bool) -> String {
        assert!(self.shard.is_none(), "flags come first");
        let flags = &mut self.rules.flags;
        let flag = match name {
            "fak_partial_fills" => &mut flags.fak_partial_fills,
            "fok_depth_aware" => &mut flags.fok_depth_aware,
            "gtd_auto_expiry" => &mut flags.gtd_auto_expiry,
            "post_only_enforced" => &mut flags.post_only_enforced,
            "min_order_size_enforced" => &mut flags.min_order_size_enforced,
            "book_impact_depletion" => &mut flags.book_impact_depletion,
            "maker_fill_at_limit" => &mut flags.maker_fill_at_limit,
            "require_book_depth" => &mut self.rules.require_book_depth,
            "quote_age_enforced" => &mut self.rules.quote_age_enforced,
            "emergency_exit" => &mut self.rules.emergency_exit,
            "sync_gtc_match" => &mut self.rules.sync_gtc_match,
            "depletion_covers_market_orders" => &mut self.rules.depletion_covers_market_orders,
            other => panic!("no such flag: {other}"),
        };
        *flag = on;
        String::new()
    }

    pub(super) fn rule(&mut self, name: &str, value: &str) -> String {
        match name {
            "fok_shortfall" => self.rules.fok_shortfall = qty(value),
            "max_shares" => self.rules.max_shares_per_order = qty(value),
            "api_cooldown" => self.rules.api_reset_cooldown_us = span(value),
            "free_daily_orders" => self.rules.free_daily_orders = number(value) as u32,
            "numbers_per_prefix" => self.rules.numbers_per_prefix = number(value) as u32,
            "order_facts_max" => self.rules.order_facts_max = number(value) as usize,
            "order_facts_left" => self.rules.order_facts_left = number(value) as usize,
            "client_ids" => self.rules.client_ids_us = span(value),
            "weather_fee" => self.rules.fees.set(Category::Weather, Bps(number(value) as u32)),
            "fee_source" => {
                let named = FeeRates::ALL.into_iter().find(|source| source.name() == value);
                self.rules.fees.source = named.expect("a source");
            }
            "fee_rounding" => {
                let named = FeeRounding::CHOICES.into_iter().find(|(_, name)| *name == value);
                self.rules.fees.rounding = named.expect("a rounding").0;
            }
            "maker_rebate" => self.rules.fees.accrues_rebates = value == "accrue",
            "beta_until" => self.rules.beta_until = Some(self.now.plus(span(value))),
            "free_trade_since" => self.rules.free_trade_since = self.now.plus(span(value)),
            "fill_model" => self.rules.realism.set_kind_model(FillModel::named(value).expect("a model")),
            "set" => assert!(self.rules.realism.choose_by_default(value), "no such set: {value}"),
            "model" => self.fills(|fill| fill.model = FillModel::named(value).expect("a model")),
            "n" => self.fills(|fill| fill.n = number(value) as u16),
            "cancel_share" => self.fills(|fill| fill.cancel_share = Bps(number(value) as u32)),
            "depth_share" => self.fills(|fill| fill.depth_share = Bps(number(value) as u32)),
            "match_window_ms" => self.fills(|fill| fill.match_window_ms = number(value) as u32),
            "half_life_s" => self.fills(|fill| fill.half_life_s = number(value) as u32),
            other => panic!("no such rule: {other}"),
        }
        String::new()
    }

    /// Keys without a choice have another set from now on: theirs, with a change.
    pub(super) fn fills(&mut self, change: impl FnOnce(&mut FillTerms)) {
        let sets = &mut self.rules.realism;
        let (mut fill, name) = (sets.chosen_by_default().fill, format!("own{}", sets.iter().count()));
        change(&mut fill);
        assert!(sets.add(RealismSet { name: name.as_str().into(), fill }) && sets.choose_by_default(&name), "{fill:?}");
        let rules = Arc::new(self.rules.clone());
        if let Some(shard) = &mut self.shard {
            shard.set_rules(rules);
        }
    }
}

pub(super) fn micros(text: &str) -> u64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = format!("{part:0<6}");
    whole.parse::<u64>().expect("a number") * 1_000_000 + part.parse::<u64>().expect("at most six decimals")
}

pub(super) fn number(text: &str) -> u64 {
    text.parse().expect("a whole number")
}

pub(super) fn qty(text: &str) -> Qty {
    Qty(micros(text))
}

pub(super) fn cash(text: &str) -> Cash {
    Cash(micros(text) as i64)
}

pub(super) fn price(text: &str) -> Price {
    Price((micros(text) / 100) as u16)
}

pub(super) fn level(text: &str) -> (Price, Qty) {
    let (at, size) = text.split_once('x').expect("PRICExSIZE");
    (price(at), qty(size))
}

pub(super) fn token(name: &str) -> InstrumentId {
    let outcome = if name.starts_with('Y') { Outcome::First } else { Outcome::Second };
    let market = if name.len() > 1 { number(&name[1..]) } else { 0 };
    MarketId(market as u32).instrument(outcome)
}

pub(super) fn tier(name: &str) -> Tier {
    match name {
        "pro" => Tier::Pro,
        "pro_plus" => Tier::ProPlus,
        "enterprise" => Tier::Enterprise,
        _ => Tier::Free,
    }
}

pub(super) fn span(text: &str) -> u64 {
    let digits = text.trim_end_matches(char::is_alphabetic);
    number(digits)
        * match &text[digits.len()..] {
            "us" => 1,
            "ms" => MILLISECOND,
            "m" => MINUTE,
            "h" => HOUR,
            _ => SECOND,
        }
}
