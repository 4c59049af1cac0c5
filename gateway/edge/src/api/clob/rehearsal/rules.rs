//! The rules of the rehearsal, in their order (gateway/docs/rehearsal.md §2). Each looks at one order as it was sent and
//! says what the venue would do with it. The repeat of an order (S08) is found by the shard, and the size of a batch and
//! the signature of a request (S15) are not about one order: `mod.rs` adds them.

use super::super::amounts::Amounts;
use super::super::order_hash::{self, text};
use super::super::signature::{Address, hexadecimal, number};
use super::{signatures, wallets};
use crate::rehearsal::{Addresses, Found};
use crate::settings::{Accounts, Allowances, Profile, Rehearsal};
use engine::amount::{Price, Qty, TickSize};
use engine::command::PlacementTerms;
use engine::order::{Side, TimeInForce};
use engine::rehearsal::{Class, Diagnosis, Rule};
use engine::time::{MILLISECOND, MINUTE, Timestamp};
use wire::value::Value;

/// Smallest budget of a BUY that takes, in 10⁻⁶ USD.
const MARKETABLE_MIN: u64 = 1_000_000;
/// How far ahead of now a GTD order has to end, and how far a page of the venue asks for.
const GTD_AHEAD_US: u64 = MINUTE;
const GTD_AHEAD_ADVISED_US: u64 = 3 * MINUTE;
/// How far from now the time of an order may be.
const TIME_WITHIN_US: u64 = 5 * MINUTE;
/// Decimals of amounts in 10⁻⁶.
const AMOUNT_DECIMALS: u32 = 6;

/// One order as it was sent, and what this server knows of its sender and its market.
pub struct Subject<'a, 'v> {
    /// The object that was signed.
    pub signed: &'a Value<'v>,
    pub amounts: Amounts,
    pub terms: &'a PlacementTerms,
    pub tick: TickSize,
    pub is_neg_risk: bool,
    /// Base fee of the market, as clients of the first generation sign it.
    pub base_fee: u64,
    /// The best ask.
    pub ask: Option<Price>,
    /// Whether `owner` is the key of the request.
    pub is_owner: bool,
    /// The address whose account sends it.
    pub account: Option<Address>,
    pub now: Timestamp,
    /// The wall clock; it may differ from server time.
    pub wall_now: Timestamp,
}

/// What a rule says about an order; `None`: nothing.
type Judged = Option<(Class, Diagnosis)>;

/// What rule S10 refuses an order for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    Tick,
    Minimum,
}

impl Subject<'_, '_> {
    /// All findings, in the order of the rules.
    pub fn findings(&self, settings: &Rehearsal, addresses: &Addresses) -> Vec<Found> {
        let mut found = Vec::new();
        let mut add = |rule, finding: Judged| {
            found.extend(finding.map(|(class, diagnosis)| Found { rule, class, diagnosis }));
        };
        let is_second = self.signed.get("timestamp").is_some();
        let (signature, wallet, third) = match is_second && settings.profile != Profile::FirstGeneration {
            true => self.signature(addresses),
            false => (None, None, None),
        };
        add(Rule::S01, self.generation(is_second, settings.profile, signature));
        add(Rule::S02, (!self.is_owner).then_some((Class::Refused, Diagnosis::Plain)));
        if is_second && settings.profile != Profile::FirstGeneration {
            add(Rule::S03, signature);
            let rule = if self.is_of_deposit_wallet() { Rule::S05 } else { Rule::S04 };
            add(rule, wallet);
            add(Rule::S06, self.signer());
            add(Rule::S07, self.account_type(settings.accounts));
        }
        add(Rule::S09, self.accuracy().map(|_| (Class::Refused, Diagnosis::Plain)));
        add(Rule::S10, self.grid().map(|_| (Class::Refused, Diagnosis::Plain)));
        add(Rule::S11, self.is_too_small_to_take().then_some((Class::Refused, Diagnosis::Plain)));
        add(Rule::S12, (!self.expires_soundly()).then_some((Class::Refused, Diagnosis::Plain)));
        add(Rule::S13, self.fields(is_second));
        add(Rule::S14, self.allowance(settings.allowances, addresses));
        add(Rule::S16, self.ends_early().then_some((Class::Depends, Diagnosis::Plain)));
        add(Rule::S17, (!is_second && self.has_other_fee()).then_some((Class::Depends, Diagnosis::Plain)));
        add(Rule::S18, third);
        found
    }

    /// S01: the generation of the order. One of the second that was signed for the first version of the exchange counts
    /// as one of the first.
    fn generation(&self, is_second: bool, profile: Profile, signature: Judged) -> Judged {
        let diagnosis = match (is_second, profile) {
            (true, Profile::FirstGeneration) => Diagnosis::SecondGeneration,
            (false, Profile::FirstGeneration) => return None,
            (false, _) => Diagnosis::FirstGeneration,
            (true, _) => match signature {
                Some((_, Diagnosis::FirstVersion)) => Diagnosis::FirstVersion,
                _ => return None,
            },
        };
        Some((Class::Refused, diagnosis))
    }

    /// S03; S04 or S05; S18: who signed, whether the wallet is that of the signer, and whether the order is for the third
    /// version of the exchange.
    fn signature(&self, addresses: &Addresses) -> (Judged, Judged, Judged) {
        let third = |other| (other == Diagnosis::ThirdVersion).then_some((Class::Depends, other));
        let refused = |why| Some((Class::Refused, why));
        let Some(contents) = order_hash::contents(self.signed) else {
            // S13 reports the fields that it knows.
            let is_reported = self.fields(true).is_some_and(|(class, _)| class == Class::Refused);
            return ((!is_reported).then_some((Class::Refused, Diagnosis::Fields)), None, None);
        };
        let (Some(maker), Some(signer)) = (self.address("maker"), self.address("signer")) else {
            return (refused(Diagnosis::Fields), None, None);
        };
        let text = text(self.signed, "signature").unwrap_or_default();
        if !self.is_of_deposit_wallet() {
            let wallet = self.wallet(&maker, &signer, addresses);
            return match signatures::check(text, &contents, &signer, self.is_neg_risk) {
                Ok(()) => (None, wallet, None),
                Err(why) if third(why).is_some() => (None, wallet, third(why)),
                Err(why) => (refused(why), wallet, None),
            };
        }
        if maker != signer {
            return (None, refused(Diagnosis::MakerIsNotSigner), None);
        }
        match signatures::unwrap(text, &contents, &maker, self.is_neg_risk) {
            Err(Diagnosis::SessionKey) => (None, Some((Class::Unverifiable, Diagnosis::SessionKey)), None),
            Err(why) => (None, refused(why), None),
            Ok(unwrapped) => {
                let third = unwrapped.other.and_then(third);
                let wallet = match unwrapped.other.filter(|_| third.is_none()) {
                    Some(other) => refused(other),
                    None if wallets::deposits(&unwrapped.owner).contains(&maker) => None,
                    None => declared(&maker, &unwrapped.owner, addresses),
                };
                // The first version has S01 as well.
                let of_first = unwrapped.other.filter(|other| *other == Diagnosis::FirstVersion);
                (of_first.and_then(refused), wallet, third)
            }
        }
    }

    /// S04: whose wallet the maker is.
    fn wallet(&self, maker: &Address, signer: &Address, addresses: &Addresses) -> Judged {
        let computed = match self.signature_type()? {
            0 => return (maker != signer).then_some((Class::Refused, Diagnosis::MakerIsNotSigner)),
            1 => wallets::proxy(signer),
            _ => wallets::safe(signer),
        };
        if computed == *maker { None } else { declared(maker, signer, addresses) }
    }

    /// S06: the address that the key was made for.
    fn signer(&self) -> Judged {
        match self.account {
            None => Some((Class::Unverifiable, Diagnosis::NoAddress)),
            Some(account) if self.address("signer") == Some(account) => None,
            Some(_) => Some((Class::Refused, Diagnosis::Plain)),
        }
    }

    /// S07: new accounts trade with deposit wallets.
    fn account_type(&self, accounts: Accounts) -> Judged {
        let class = if accounts == Accounts::New { Class::Refused } else { Class::Depends };
        (!self.is_of_deposit_wallet()).then_some((class, Diagnosis::Plain))
    }

    /// S09: the decimals that maker and taker amount may have, if one of them has more.
    pub fn accuracy(&self) -> Option<(u32, u32)> {
        let usd = match self.tick.0 {
            1_000 => 3,
            100 => 4,
            50 | 10 => 5,
            _ => 6,
        };
        let (maker, taker) = match (self.terms.time_in_force.immediate(), self.terms.side) {
            (true, _) => (2, 4),
            (false, Side::Buy) => (usd, 2),
            (false, Side::Sell) => (2, usd),
        };
        let has_more = |amount: u64, decimals| !amount.is_multiple_of(10_u64.pow(AMOUNT_DECIMALS - decimals));
        (has_more(self.amounts.maker(), maker) || has_more(self.amounts.taker(), taker)).then_some((maker, taker))
    }

    /// S10: a price off the grid, or too few shares. An order that takes has a price as near to the grid as the decimals
    /// of its taker amount let it be, and no minimum of shares.
    pub fn grid(&self) -> Option<Grid> {
        let (usd, shares) = self.amounts.price();
        let (scaled, whole) = (usd * 10_000, shares * u128::from(self.tick.0));
        let in_range = |ticks: u128| (1..10_000 / u128::from(self.tick.0)).contains(&ticks);
        if !self.terms.time_in_force.immediate() {
            let ticks = scaled / whole;
            if !scaled.is_multiple_of(whole) || !in_range(ticks) {
                return Some(Grid::Tick);
            }
            return (self.amounts.shares() < self.minimum()).then_some(Grid::Minimum);
        }
        let step = 10_u128.pow(AMOUNT_DECIMALS - 4);
        let is_near = |ticks: u128| {
            let price = ticks * u128::from(self.tick.0);
            in_range(ticks)
                && match self.terms.side {
                    Side::Buy => (shares * price).abs_diff(scaled) <= step * price,
                    Side::Sell => scaled.abs_diff(shares * price) <= step * 10_000,
                }
        };
        let below = scaled / whole;
        (!is_near(below) && !is_near(below + 1)).then_some(Grid::Tick)
    }

    /// Smallest order of the market.
    pub fn minimum(&self) -> Qty {
        self.tick.min_order_size()
    }

    /// S11: a BUY that takes, for less than a dollar.
    fn is_too_small_to_take(&self) -> bool {
        let (usd, shares) = self.amounts.price();
        let reaches = |ask: Price| usd * 10_000 >= shares * u128::from(ask.0);
        let takes = self.terms.time_in_force.immediate() || (!self.terms.post_only && self.ask.is_some_and(reaches));
        self.terms.side == Side::Buy && takes && self.amounts.maker() < MARKETABLE_MIN
    }

    /// S12: a GTD order ends more than a minute from now, and others have no end.
    fn expires_soundly(&self) -> bool {
        match self.terms.time_in_force {
            TimeInForce::Gtd => self.terms.expiration.is_some_and(|at| at > self.now.plus(GTD_AHEAD_US)),
            _ => match self.signed.get("expiration") {
                None | Some(Value::Null) => true,
                Some(Value::Text(text)) => text == "0",
                Some(Value::Number(text)) => *text == "0",
                Some(_) => false,
            },
        }
    }

    /// S16: a page of the venue asks for three minutes.
    fn ends_early(&self) -> bool {
        let is_early = |at: Timestamp| at <= self.now.plus(GTD_AHEAD_ADVISED_US);
        self.terms.time_in_force == TimeInForce::Gtd
            && self.expires_soundly()
            && self.terms.expiration.is_some_and(is_early)
    }

    /// S13: fields of the second generation.
    fn fields(&self, is_second: bool) -> Judged {
        let integer = |name| text(self.signed, name).is_some_and(|text| number(text.as_bytes()).is_some());
        let bytes = |name| text(self.signed, name).is_some_and(|text| hexadecimal::<32>(text.as_bytes()).is_some());
        let is_sound = integer("salt")
            && self.signature_type().is_some()
            && (!is_second || (integer("timestamp") && bytes("metadata") && bytes("builder")));
        if !is_sound {
            return Some((Class::Refused, Diagnosis::Fields));
        }
        let at = text(self.signed, "timestamp").filter(|_| is_second)?;
        let at = at.parse().ok().and_then(|millis: u64| millis.checked_mul(MILLISECOND)).unwrap_or(u64::MAX);
        let is_near = |now: Timestamp| now.0.abs_diff(at) <= TIME_WITHIN_US;
        (!is_near(self.now) && !is_near(self.wall_now)).then_some((Class::Depends, Diagnosis::Time))
    }

    /// S14: what the exchange may spend of the maker's.
    fn allowance(&self, allowances: Allowances, addresses: &Addresses) -> Judged {
        if allowances == Allowances::Granted {
            return None;
        }
        let declared = self.address("maker").and_then(|maker| addresses.get(&maker.0));
        let is_allowed = declared.is_some_and(|of| if self.is_neg_risk { of.neg_risk } else { of.exchange });
        (!is_allowed).then_some((Class::Refused, Diagnosis::Plain))
    }

    /// S17: an order of the first generation with another fee than that of the market.
    fn has_other_fee(&self) -> bool {
        text(self.signed, "feeRateBps").and_then(|text| text.parse().ok()) != Some(self.base_fee)
    }

    /// 0: a key; 1: a proxy; 2: a Safe; 3: a deposit wallet. `None`: another number.
    fn signature_type(&self) -> Option<u8> {
        text(self.signed, "signatureType").and_then(|text| text.parse().ok()).filter(|number| *number <= 3)
    }

    fn is_of_deposit_wallet(&self) -> bool {
        self.signature_type() == Some(3)
    }

    fn address(&self, name: &str) -> Option<Address> {
        hexadecimal(text(self.signed, name)?.as_bytes()).map(Address)
    }
}

/// What a declaration says about the owner of a wallet.
fn declared(wallet: &Address, owner: &Address, addresses: &Addresses) -> Judged {
    match addresses.get(&wallet.0).and_then(|declared| declared.owner) {
        Some(known) if known == owner.0 => None,
        Some(_) => Some((Class::Refused, Diagnosis::OtherOwner)),
        None => Some((Class::Unverifiable, Diagnosis::NoOwner)),
    }
}
