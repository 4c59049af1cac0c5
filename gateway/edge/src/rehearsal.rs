//! Findings of the rehearsal of the venue's checks on their way to the journal and to a monitor, and the addresses that
//! an administrator declared (gateway/docs/rehearsal.md). Shared by all threads.
//!
//! A finding of a key is journaled when it is new in its minute. Those that follow in the same minute are counted, and
//! journaled in the next one, or when the server stops.

use ahash::AHashMap;
use engine::command::Command;
use engine::describe::Words as _;
use engine::id::{KeyId, OrderId, UserId};
use engine::rehearsal::{Class, DeclaredAddress, Diagnosis, Finding, Rule};
use engine::time::{MINUTE, Timestamp};
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How often findings are looked for that have waited into the next minute.
pub const FLUSH_EVERY: Duration = Duration::from_secs(5);

/// Findings and declared addresses.
#[derive(Debug, Default)]
pub struct Rehearsal {
    counts: Counts,
    waiting: Mutex<AHashMap<Of, Waiting>>,
    pub addresses: Addresses,
}

/// What is journaled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Of {
    user: UserId,
    key: KeyId,
    rule: Rule,
    class: Class,
}

/// Findings that are not journaled yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The minute of the last record.
    minute: u64,
    count: u32,
    diagnosis: Diagnosis,
    order: Option<OrderId>,
}

/// A finding in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub rule: Rule,
    pub class: Class,
    pub diagnosis: Diagnosis,
}

impl Rehearsal {
    /// Adds what was found in an order of that key, which has a row if `order` says so, and the order itself. Returns what
    /// is to be journaled now.
    pub fn note(
        &self,
        (user, key): (UserId, KeyId),
        found: &[Found],
        order: Option<OrderId>,
        at: Timestamp,
    ) -> Option<Command> {
        let worst = found.iter().max_by_key(|found| found.class);
        let (class, diagnosis) = worst.map_or((Class::Clean, Diagnosis::Plain), |worst| (worst.class, worst.diagnosis));
        let orders = Found { rule: Rule::Orders, class, diagnosis };
        let minute = at.0 / MINUTE;
        let mut findings = Vec::new();
        let mut waiting = self.waiting.lock();
        for Found { rule, class, diagnosis } in found.iter().copied().chain([orders]) {
            self.counts.add(rule, class);
            let of = Of { user, key, rule, class };
            let known = waiting.entry(of).or_insert(Waiting { minute: u64::MAX, count: 0, diagnosis, order: None });
            known.count = known.count.saturating_add(1);
            known.diagnosis = diagnosis;
            known.order = order.or(known.order);
            if known.minute != minute {
                findings.push(known.taken(of, minute));
            }
        }
        (!findings.is_empty()).then_some(Command::NoteStrict { key, findings })
    }

    /// What has waited into the next minute, or all that waits.
    pub fn flush(&self, at: Timestamp, all: bool) -> Vec<(UserId, Command)> {
        let minute = at.0 / MINUTE;
        let mut due: AHashMap<(UserId, KeyId), Vec<Finding>> = AHashMap::new();
        self.waiting.lock().retain(|of, known| {
            if known.count > 0 && (all || known.minute != minute) {
                due.entry((of.user, of.key)).or_default().push(known.taken(*of, minute));
            }
            known.count > 0 || known.minute == minute
        });
        let command = |((user, key), mut findings): (_, Vec<Finding>)| {
            findings.sort_unstable_by_key(|finding| (finding.rule, finding.class));
            (user, Command::NoteStrict { key, findings })
        };
        due.into_iter().map(command).collect()
    }

    /// Findings since the start by rule and class, without rows of zero.
    pub fn counted(&self) -> Vec<([(&'static str, &'static str); 2], u64)> {
        let mut rows = Vec::new();
        for (rule, name) in Rule::ALL.iter().zip(Rule::NAMES).filter(|(rule, _)| **rule != Rule::Orders) {
            for (class, word) in
                [(Class::Unverifiable, "unverifiable"), (Class::Depends, "depends"), (Class::Refused, "refused")]
            {
                let count = self.counts.0[*rule as usize][class as usize].load(Relaxed);
                if count > 0 {
                    rows.push(([("rule", *name), ("class", word)], count));
                }
            }
        }
        rows
    }
}

impl Waiting {
    /// What is journaled in this minute.
    fn taken(&mut self, of: Of, minute: u64) -> Finding {
        self.minute = minute;
        Finding {
            rule: of.rule,
            class: of.class,
            diagnosis: self.diagnosis,
            count: std::mem::take(&mut self.count),
            order: self.order.take(),
        }
    }
}

/// Findings since the start, by rule and class.
#[derive(Debug)]
struct Counts([[AtomicU64; Class::ALL.len()]; Rule::ALL.len()]);

impl Default for Counts {
    fn default() -> Counts {
        Counts(std::array::from_fn(|_| Default::default()))
    }
}

impl Counts {
    fn add(&self, rule: Rule, class: Class) {
        self.0[rule as usize][class as usize].fetch_add(1, Relaxed);
    }
}

/// What administrators declared about addresses; the latest declaration counts.
#[derive(Debug, Default)]
pub struct Addresses(RwLock<AHashMap<[u8; 20], DeclaredAddress>>);

impl Addresses {
    pub fn get(&self, address: &[u8; 20]) -> Option<DeclaredAddress> {
        self.0.read().get(address).copied()
    }

    pub fn set(&self, address: [u8; 20], declared: DeclaredAddress) {
        self.0.write().insert(address, declared);
    }

    pub fn len(&self) -> usize {
        self.0.read().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a closer look at an order showed; `None`: the rule says it all.
pub fn explained(diagnosis: Diagnosis) -> Option<&'static str> {
    Some(match diagnosis {
        Diagnosis::Plain => return None,
        Diagnosis::FirstGeneration => "The order has the fields of the first generation.",
        Diagnosis::SecondGeneration => "The order has the fields of the second generation.",
        Diagnosis::OtherExchange => "It is signed for the other exchange: that of markets with another neg-risk flag.",
        Diagnosis::OtherChain => "It is signed for chain 80002, the test network.",
        Diagnosis::OtherExchangeAndChain => "It is signed for the other exchange, on chain 80002.",
        Diagnosis::FirstVersion => "It is signed for version 1 of the exchange.",
        Diagnosis::ThirdVersion => "It is signed for version 3 of the exchange.",
        Diagnosis::Length => "The signature is not hexadecimal, or not of the length of its type.",
        Diagnosis::HighS => "The signature has the higher one of the two forms of s.",
        Diagnosis::NoPoint => "The bytes are not a signature.",
        Diagnosis::OtherSigner => "Another key signed, or another order than this one was signed.",
        Diagnosis::Fields => "A field of the order is missing or malformed.",
        Diagnosis::MakerIsNotSigner => "Maker and signer differ.",
        Diagnosis::OtherOwner => "The wallet is declared with another owner.",
        Diagnosis::NoOwner => "Neither the address of the wallet nor a declaration shows its owner.",
        Diagnosis::SessionKey => "A session key signed; only the wallet knows whether it may.",
        Diagnosis::OtherContents => "The signature is about another order.",
        Diagnosis::NoAddress => "The key was not made by the signature of an address.",
        Diagnosis::NoHeader => "The request has no POLY_SIGNATURE.",
        Diagnosis::Passphrase => "POLY_PASSPHRASE is not that of the key.",
        Diagnosis::Time => "Its time is too far from now.",
    })
}

/// What a rule asks for, and what to do about a finding.
pub fn about(rule: Rule) -> (&'static str, &'static str) {
    match rule {
        Rule::Orders => ("signed orders", "-"),
        Rule::S01 => ("orders are of the second generation", "Update the client; build orders by GET /version."),
        Rule::S02 => ("owner is the key of the request", "Send the key of POLY_API_KEY as owner."),
        Rule::S03 => (
            "the signer signed, for the exchange of the market",
            "Read neg_risk of the market before signing, sign on chain 137 for version 2, with the key of signer.",
        ),
        Rule::S04 => (
            "the wallet is that of the signer",
            "Set signature type and funder of the client to those of the account, or declare the address.",
        ),
        Rule::S05 => (
            "the owner of the deposit wallet signed",
            "Sign with the owner's key by an up-to-date client, or declare the address.",
        ),
        Rule::S06 => ("signer is the address of the key", "Make the key with the address that signs orders."),
        Rule::S07 => ("new accounts use deposit wallets", "Use a deposit wallet (signature type 3)."),
        Rule::S08 => ("an order is sent once", "Build a new order, with another salt, instead of sending it again."),
        Rule::S09 => ("amounts have few decimals", "Round price and size by the tick, as the clients do."),
        Rule::S10 => ("the price is on the grid, the size above the minimum", "Read tick and minimum of the market."),
        Rule::S11 => ("a BUY that takes spends a dollar", "Raise the amount to 1 USD."),
        Rule::S12 => ("a GTD order ends more than a minute from now", "Move the expiration; send 0 for other types."),
        Rule::S13 => ("fields have the types of the second generation", "Let the client build the order."),
        Rule::S14 => ("the exchange may spend", "Set the allowances of the address at the exchange, and declare them."),
        Rule::S15 => (
            "requests are signed with the key's secret, batches have at most 15 orders",
            "Sign with secret and passphrase of the key; split the batch.",
        ),
        Rule::S16 => ("a GTD order ends more than three minutes from now", "Move the expiration."),
        Rule::S17 => ("the fee of an order of the first generation is that of the market", "Read base_fee."),
        Rule::S18 => ("orders are signed for version 2 of the exchange", "Check whether the market is of version 3."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: (UserId, KeyId) = (UserId(1), KeyId(7));
    const S03: Found = Found { rule: Rule::S03, class: Class::Refused, diagnosis: Diagnosis::OtherChain };
    const S07: Found = Found { rule: Rule::S07, class: Class::Depends, diagnosis: Diagnosis::Plain };

    /// Rule, class, count and order of each finding of a command.
    fn shown(command: Option<Command>) -> Vec<(Rule, Class, u32, Option<u64>)> {
        let Some(Command::NoteStrict { key, findings }) = command else { return Vec::new() };
        assert_eq!(key, KEY.1);
        findings.iter().map(|one| (one.rule, one.class, one.count, one.order.map(|order| order.0))).collect()
    }

    #[test]
    fn a_finding_is_journaled_once_in_a_minute_and_none_is_lost() {
        let rehearsal = Rehearsal::default();
        let at = |second: u64| Timestamp(600 * MINUTE + second * 1_000_000);
        let note = |found: &[Found], order: Option<u64>, second| {
            shown(rehearsal.note(KEY, found, order.map(OrderId), at(second)))
        };
        let (orders, s03, s07) = (Rule::Orders, Rule::S03, Rule::S07);
        let (clean, depends, refused) = (Class::Clean, Class::Depends, Class::Refused);
        assert_eq!(note(&[], Some(1), 0), [(orders, clean, 1, Some(1))]);
        assert_eq!(note(&[], Some(2), 1), []);
        assert_eq!(
            note(&[S03, S07], None, 2),
            [(s03, refused, 1, None), (s07, depends, 1, None), (orders, refused, 1, None)]
        );
        assert_eq!(note(&[S07], Some(3), 3), [(orders, depends, 1, Some(3))]);
        assert_eq!(note(&[S07], None, 59), []);
        assert!(rehearsal.flush(at(59), false).is_empty());
        // In the next minute the first one has those that waited, and so has the timer.
        assert_eq!(note(&[S07], None, 60), [(s07, depends, 3, Some(3)), (orders, depends, 2, None)]);
        let flushed: Vec<_> = rehearsal.flush(at(60), false);
        assert_eq!(flushed.len(), 1, "{flushed:?}");
        assert_eq!(shown(flushed.into_iter().next().map(|(_, command)| command)), [(orders, clean, 1, Some(2))]);
        assert!(rehearsal.flush(at(60), true).is_empty());
        assert_eq!(note(&[S03], Some(9), 61), [(s03, refused, 1, Some(9)), (orders, refused, 1, Some(9))]);
        assert_eq!(note(&[S03], Some(10), 62), []);
        // At the end of the server.
        let flushed = rehearsal.flush(at(63), true).into_iter().next().map(|(_, command)| command);
        assert_eq!(shown(flushed), [(orders, refused, 1, Some(10)), (s03, refused, 1, Some(10))]);
        // What has not come for a minute is forgotten.
        assert!(rehearsal.flush(at(400), false).is_empty());
        assert!(rehearsal.waiting.lock().is_empty());
        let counted = rehearsal.counted();
        assert_eq!(
            counted,
            [([("rule", "S03"), ("class", "refused")], 3), ([("rule", "S07"), ("class", "depends")], 4)]
        );
        println!("findings: 13 cases");
    }

    /// Findings of many orders at random times: what is journaled adds up to what was found, and no rule of a key comes
    /// twice in a minute before the end.
    #[test]
    fn journaled_counts_add_up() {
        let mut cases = 0;
        for seed in 0..50_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % below
            };
            let rehearsal = Rehearsal::default();
            let (mut now, mut noted, mut found_in_all) = (600 * MINUTE, AHashMap::new(), AHashMap::new());
            let mut take = |at: u64, user: UserId, command: Command, is_end: bool| {
                let Command::NoteStrict { key, findings } = command else { panic!("{command:?}") };
                for Finding { rule, class, count, .. } in findings {
                    let (last, sum) = noted.entry((user, key, rule, class)).or_insert((u64::MAX, 0_u64));
                    assert!(is_end || *last != at / MINUTE, "seed {seed}: twice in a minute");
                    assert!(count > 0, "seed {seed}");
                    (*last, *sum) = (at / MINUTE, *sum + u64::from(count));
                }
            };
            for _ in 0..400 {
                now += next(20_000_000);
                let user = UserId(1 + next(2));
                let of = (user, KeyId(next(3)));
                let found: Vec<Found> = [S03, S07].into_iter().filter(|_| next(3) == 0).collect();
                for one in &found {
                    *found_in_all.entry((of.0, of.1, one.rule, one.class)).or_insert(0_u64) += 1;
                }
                let worst = found.iter().map(|one| one.class).max().unwrap_or(Class::Clean);
                *found_in_all.entry((of.0, of.1, Rule::Orders, worst)).or_insert(0) += 1;
                if let Some(command) = rehearsal.note(of, &found, None, Timestamp(now)) {
                    take(now, user, command, false);
                }
                if next(4) == 0 {
                    for (user, command) in rehearsal.flush(Timestamp(now), false) {
                        take(now, user, command, false);
                    }
                }
                cases += 1;
            }
            for (user, command) in rehearsal.flush(Timestamp(now), true) {
                take(now, user, command, true);
            }
            let sums: AHashMap<_, _> = noted.into_iter().map(|(of, (_, sum))| (of, sum)).collect();
            assert_eq!(sums, found_in_all, "seed {seed}");
        }
        println!("orders: {cases} cases");
    }
}
