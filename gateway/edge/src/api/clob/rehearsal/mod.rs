//! The rehearsal: signed orders are checked as the venue does, and reported or refused (gateway/docs/rehearsal.md). Off by
//! default; then nothing here runs.
//!
//! | File | Holds |
//! |---|---|
//! | `rules.rs` | the rules of one order |
//! | `signatures.rs`, `wallets.rs` | who signed for which exchange; whose wallet an address is |
//! | `requests.rs` | the signature of a request |
//! | `words.rs` | codes and sentences of refusals |
//!
//! A refusal goes to the shard with the order, as that of an unsound order does: a repeated request and a spent daily limit
//! come first.

mod requests;
mod rules;
mod signatures;
mod wallets;
mod words;

use super::address_login;
use super::order_hash::{order_hash, text};
use super::signed::SignedOrder;
use crate::api::prices::base_fee;
use crate::http::auth;
use crate::http::call::Call;
use crate::http::reply::{Outcome, Refusal};
use crate::rehearsal::Found;
use crate::settings::{Rehearsal as Settings, Rehearse};
use engine::command::{Answer, BatchEntry, IdSource, InvalidTerms};
use engine::describe::Words as _;
use engine::id::OrderId;
use engine::order::Order;
use engine::rehearsal::{Class, Diagnosis, Rule};
use engine::reject::Reject;
use engine::view::OrderView;
use hyper::header::HeaderValue;
use rules::Subject;
use wire::value::Value;

/// Orders of one batch at the venue.
const BATCH_MAX: usize = 15;
/// A repeated order.
const REPEATED: Found = Found { rule: Rule::S08, class: Class::Refused, diagnosis: Diagnosis::Plain };

/// The rehearsal of one request.
pub struct Rehearsal<'c> {
    call: &'c Call,
    settings: Settings,
    /// What its signature shows.
    request: Option<Found>,
}

/// What was found in one order before it went to the shard.
#[derive(Debug)]
pub struct Looked {
    found: Vec<Found>,
    /// The hash of the order, if it becomes its id.
    hash: Option<[u8; 32]>,
    /// The finding that it is refused for.
    refused: Option<Found>,
}

/// What the shard made of an order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Made {
    order: Option<OrderId>,
    /// The hash that is the order's id.
    hash: Option<[u8; 32]>,
    is_repeat: bool,
}

impl<'c> Rehearsal<'c> {
    /// `None` while it is off.
    pub fn of(call: &'c Call) -> Option<Rehearsal<'c>> {
        let settings = call.front().settings.compat.rehearsal;
        if settings.mode == Rehearse::Off {
            return None;
        }
        let found = requests::finding(call);
        let request = found.map(|(class, diagnosis)| Found { rule: Rule::S15, class, diagnosis });
        Some(Rehearsal { call, settings, request })
    }

    /// Whether what the venue would refuse is refused.
    pub fn enforces(&self) -> bool {
        self.settings.mode == Rehearse::Enforce
    }

    /// Checks a batch as a whole.
    ///
    /// # Errors
    /// The venue would refuse it: it has too many orders, or a wrong signature.
    pub fn batch(&mut self, orders: usize) -> Result<(), Refusal> {
        let unsigned = self.request.filter(|found| found.class == Class::Refused);
        if unsigned.is_none() && orders > BATCH_MAX {
            let diagnosis = Diagnosis::Plain;
            self.request = Some(Found { rule: Rule::S15, class: Class::Refused, diagnosis });
        }
        let refused = self.request.filter(|found| found.class == Class::Refused && self.enforces());
        let Some(found) = refused else { return Ok(()) };
        (0..orders).for_each(|_| self.note(&[found], None));
        let refusal = match unsigned {
            Some(_) => words::unauthorized(),
            None => words::too_many(orders, BATCH_MAX),
        };
        Err(words::named(refusal, found))
    }

    /// Looks at an order before it goes to the shard, and has it refused if the venue would refuse it. `None`: the order is
    /// refused without the venue's checks.
    pub fn look(&self, order: &mut SignedOrder<'_, '_>, endpoint: &str) -> Option<Looked> {
        let (call, reads) = (self.call, self.call.reads());
        let SignedOrder { placement, request } = order;
        let (amounts, terms) = (request.amounts()?, placement.terms.as_ref().ok()?);
        let signed = request.body().get("order")?;
        let instrument = terms.instrument?;
        let market = reads.catalog.of_instrument(instrument)?;
        let subject = Subject {
            signed,
            amounts,
            terms,
            tick: market.tick(),
            is_neg_risk: market.listing.neg_risk,
            base_fee: base_fee(reads.rules.fees.rate(market.listing.category).0),
            ask: reads.books.effective_top(instrument).ok().and_then(|top| top.ask),
            is_owner: self.is_owner(request.body()),
            account: address_login::address_of(&reads.directory, call.caller().user),
            now: call.now,
            wall_now: reads.clock.wall_now(),
        };
        let mut found = subject.findings(&self.settings, &call.edge.app.rehearsal.addresses);
        found.extend(self.request);
        found.sort_by_key(|found| found.rule);
        let has_hashes = reads.rules.formats.is_newest();
        let mut looked = Looked { found, hash: placement.order_hash.filter(|_| has_hashes), refused: None };
        if !self.enforces() {
            return Some(looked);
        }
        looked.refused = looked.found.iter().copied().find(|found| found.class == Class::Refused);
        let refusal = looked.refused.map(|first| words::refusal(first, &subject, &request.echo(endpoint)));
        // A repeat is refused in its place among the rules, and not answered again.
        looked.hash = order_hash(signed, market.listing.neg_risk).filter(|_| has_hashes);
        placement.order_hash = looked.hash;
        placement.refuses_known_hash = looked.refused.is_none_or(|first| first.rule > Rule::S08);
        if placement.request.as_ref().is_some_and(|request| request.source == IdSource::Implicit) {
            placement.request = None;
        }
        if refusal.is_some() {
            (placement.terms, request.fault) = (Err(InvalidTerms), refusal);
        }
        Some(looked)
    }

    /// The refusal of an order by the shard, in the venue's words if the order was sent before.
    pub fn worded(&self, reject: &Reject, looked: Option<&Looked>, refused: Refusal) -> Refusal {
        match (reject, looked.and_then(|looked| looked.hash)) {
            (Reject::OrderHashKnown, Some(hash)) => words::duplicated(refused, &hash, REPEATED),
            _ => refused,
        }
    }

    /// The finding that an entry of a batch is refused for.
    pub fn reason(&self, reject: &Reject, looked: Option<&Looked>) -> Option<Found> {
        match reject {
            Reject::OrderHashKnown => Some(REPEATED),
            Reject::InvalidTerms => looked.and_then(|looked| looked.refused),
            _ => None,
        }
    }

    /// Counts and journals what was found in the orders of the request; returns the rules for the header.
    pub fn end(&self, orders: Vec<(Option<Looked>, Made)>) -> Option<HeaderValue> {
        let mut rules = Vec::new();
        for (looked, made) in orders {
            let Some(Looked { mut found, hash, .. }) = looked else { continue };
            // Another order has the hash already.
            let is_unhashed = made.order.is_some() && hash.is_some() && made.hash != hash;
            if made.is_repeat || is_unhashed {
                found.push(REPEATED);
                found.sort_by_key(|found| found.rule);
            }
            self.note(&found, made.order);
            rules.extend(found.iter().map(|found| found.rule));
        }
        rules.sort_unstable();
        rules.dedup();
        let names: Vec<&str> = rules.iter().map(|rule| Rule::NAMES[*rule as usize]).collect();
        (!names.is_empty()).then(|| HeaderValue::try_from(names.join(",")).expect("names of rules are ASCII"))
    }

    /// Adds the header to an answer.
    pub fn headed(&self, outcome: Outcome, rules: Option<HeaderValue>) -> Outcome {
        let Some(rules) = rules else { return outcome };
        let name = self.call.front().names.strict.clone();
        match outcome {
            Ok(reply) => Ok(reply.with_header(name, rules)),
            Err(refusal) => Err(refusal.with_header(name, rules)),
        }
    }

    fn note(&self, found: &[Found], order: Option<OrderId>) {
        let (edge, caller) = (&self.call.edge, self.call.caller());
        let noted = edge.app.rehearsal.note((caller.user, self.call.key()), found, order, self.call.now);
        if let Some(command) = noted {
            edge.engine.tell(caller.user, command);
        }
    }

    /// Whether `owner` is the key of the request, in either of its forms.
    fn is_owner(&self, body: &Value<'_>) -> bool {
        let reads = self.call.reads();
        let hash = text(body, "owner")
            .and_then(|owner| auth::key_hash(owner.as_bytes(), &self.call.front().settings.brand.key_prefix));
        let owner = hash.and_then(|hash| reads.directory.principal(&hash));
        owner.is_some_and(|owner| Some(owner.key) == self.call.caller().key)
    }
}

impl Made {
    /// What an answer says about its order.
    pub fn of(answer: &Result<Answer, Refusal>) -> Made {
        match answer {
            Ok(Answer::Order(view) | Answer::Killed { order: view, .. }) => Made::of_view(view),
            Ok(Answer::Refused(reject)) => Made::of_reject(reject),
            _ => Made::default(),
        }
    }

    /// The same for an entry of a batch.
    pub fn of_entry(entry: &BatchEntry) -> Made {
        match entry {
            BatchEntry::Placed(view) | BatchEntry::Killed { order: view, .. } => Made::of_view(view),
            BatchEntry::Refused(reject) => Made::of_reject(reject),
        }
    }

    fn of_view(view: &OrderView) -> Made {
        let Order { id, terms, .. } = &view.order;
        Made { order: Some(*id), is_repeat: view.is_replay, hash: terms.order_hash().copied() }
    }

    fn of_reject(reject: &Reject) -> Made {
        Made { is_repeat: *reject == Reject::OrderHashKnown, ..Made::default() }
    }
}

#[cfg(test)]
mod tests;
