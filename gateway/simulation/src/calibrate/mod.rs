//! Live orders against the fill models, on a recording of the same time (gateway/docs/calibrate.md).
//!
//! | File | Holds |
//! |---|---|
//! | `orders.rs` | the CSV file of live orders |
//! | `own.rs` | what rested and what was filled of them, as the recording shows it |
//! | `walk.rs` | one pass over the recording for all models |
//! | `lane.rs` | a model: a shard with one user |
//! | `sights.rs` | whether the recording shows the book that an order met |
//! | `tape_digest.rs` | a hash of what the recording says |
//! | `table.rs` | the figures of each model |
//! | `page.rs` | the page of HTML |
//! | `control.rs` | a recording with known truth |
//!
//! All figures are integers, so a result is the same on every machine.

pub mod control;
mod lane;
pub mod orders;
mod own;
mod page;
mod sights;
pub mod table;
mod tape_digest;
mod walk;

use engine::order::Side;
use engine::realism::{EXPONENT_MAX, FillModel, FillTerms};
use engine::rules::Rules;
use engine::time::Timestamp;
pub use lane::{ModelFill, ModelOrder};
use orders::LiveOrder;
pub use page::{Calibration, html};
use sha2::{Digest as _, Sha256};
pub use sights::{LeftOut, UNSEEN_MAX};
use std::ops::Range;
use table::Row;
use venue::Venue;
pub use walk::Ended;

/// A fill model with its name in results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub name: String,
    pub fill: FillTerms,
}

impl Model {
    /// The models of a list like `touch,queue_prob:3`; all five for none. What a name does not say is as in `base`.
    ///
    /// # Errors
    /// An unknown or repeated name, or an exponent out of its bounds.
    pub fn list(text: Option<&str>, base: FillTerms) -> Result<Vec<Model>, String> {
        let of = |name: &str, fill| Model { name: name.to_owned(), fill };
        let Some(text) = text else {
            let all = FillModel::ALL.into_iter().map(|model| of(model.name(), FillTerms { model, ..base }));
            return Ok(all.collect());
        };
        let mut models: Vec<Model> = Vec::new();
        for name in text.split(',') {
            let (word, exponent) = name.split_once(':').map_or((name, None), |(word, n)| (word, Some(n)));
            let names = FillModel::ALL.map(FillModel::name).join(", ");
            let model = FillModel::named(word).ok_or_else(|| format!("allowed are {names}, not {name:?}"))?;
            let n = match exponent {
                None => base.n,
                Some(n) if model == FillModel::QueueProb => {
                    let n = n.parse().ok().filter(|n| (1..=EXPONENT_MAX).contains(n));
                    n.ok_or_else(|| format!("an exponent is 1 to {EXPONENT_MAX}: {name:?}"))?
                }
                Some(_) => return Err(format!("only queue_prob has an exponent: {name:?}")),
            };
            if models.iter().any(|known| known.name == name) {
                return Err(format!("{name:?} is given twice"));
            }
            models.push(of(name, FillTerms { model, n, ..base }));
        }
        Ok(models)
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    pub orders: &'a [LiveOrder],
    pub models: &'a [Model],
    /// Those of the server; their sets and bounds of sizes do not count.
    pub rules: &'a Rules,
    /// The traces of the orders are taken out of the recording.
    pub removes_own: bool,
    /// Of the resamples.
    pub seed: u64,
    /// Time from sending to the acknowledgement of an order without one, µs.
    pub ack_after: u64,
}

impl<'a> Comparison<'a> {
    /// `ack_after` is the median of the orders that have both times, 0 if none has.
    pub fn new(
        orders: &'a [LiveOrder],
        models: &'a [Model],
        rules: &'a Rules,
        removes_own: bool,
        seed: u64,
    ) -> Comparison<'a> {
        let taken = orders.iter().filter_map(|order| Some(order.acked_at?.since(order.sent_at)));
        let ack_after = table::quantile(taken.collect(), 1, 2).unwrap_or(0);
        Comparison { orders, models, rules, removes_own, seed, ack_after }
    }

    /// When an order meets the book.
    pub fn entered_at(&self, order: &LiveOrder) -> Timestamp {
        order.acked_at.unwrap_or(order.sent_at.plus(self.ack_after))
    }

    /// Plays the recording, and compares. `goes_on` is asked at every moment; false ends the run.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn run(&self, venue: &mut dyn Venue, goes_on: &dyn Fn() -> bool) -> Result<Report, Ended> {
        let walked = walk::walk(venue, self, goes_on)?;
        let rows = table::rows(self, &walked);
        let walk::Walked { models, left_out, marks, digest, span } = walked;
        let mut report = Report { rows, models, left_out, marks, tape: digest, span, hash: [0; 32] };
        report.hash = self.hash(&report);
        Ok(report)
    }

    /// SHA-256 over everything that decides a result, and what the models did. The figures follow from these.
    fn hash(&self, report: &Report) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut number = |number: u64| hash.update(number.to_le_bytes());
        number(self.seed);
        number(self.removes_own.into());
        number(self.ack_after);
        number(self.orders.len() as u64);
        for (order, (left_out, mark)) in self.orders.iter().zip(report.left_out.iter().zip(&report.marks)) {
            number(order.side as u64);
            number(order.kind as u64);
            number(order.price.0.into());
            number(order.size.0);
            number(order.post_only.into());
            number(self.entered_at(order).0);
            number(order.cancelled_at.map_or(0, |at| at.0));
            number(order.fills.len() as u64);
            for fill in &order.fills {
                [fill.at.0, fill.price.0 as u64, fill.size.0, fill.fee.map_or(u64::MAX, |fee| fee.0 as u64)]
                    .into_iter()
                    .for_each(&mut number);
            }
            number(left_out.map_or(u64::MAX, |why| why as u64));
            number(mark.map_or(u64::MAX, |mark| mark.0 as u64));
        }
        number(self.models.len() as u64);
        for (model, orders) in self.models.iter().zip(&report.models) {
            let FillTerms { model, n, cancel_share, depth_share, match_window_ms, half_life_s } = model.fill;
            number(model as u64);
            let terms = [n.into(), cancel_share.0, depth_share.0, match_window_ms, half_life_s];
            terms.into_iter().for_each(|term: u32| number(term.into()));
            for order in orders {
                number(order.refused.is_some().into());
                number(order.fills.len() as u64);
                for fill in &order.fills {
                    [fill.at.0, fill.size.0, fill.notional.0 as u64, fill.fee.0 as u64, fill.is_maker.into()]
                        .into_iter()
                        .for_each(&mut number);
                }
            }
        }
        // The texts last, each with its length before it.
        let texts = self.orders.iter().flat_map(|order| [&order.id, &order.token]);
        for text in texts.chain(self.models.iter().map(|model| &model.name)) {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        hash.update(report.tape);
        hash.finalize().into()
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// By model.
    pub rows: Vec<Row>,
    /// By model, then by order.
    pub models: Vec<Vec<ModelOrder>>,
    /// By order: why it is not compared.
    pub left_out: Vec<Option<LeftOut>>,
    /// By order: the value of a share of its token, 10⁻⁶ USD.
    pub marks: Vec<Option<engine::amount::Cash>>,
    /// SHA-256 of what the recording says about the markets of the file.
    pub tape: [u8; 32],
    pub span: Range<Timestamp>,
    /// SHA-256 of what decides the result, and of what the models did.
    pub hash: [u8; 32],
}

impl Report {
    /// Count of orders that are compared.
    pub fn compared(&self) -> usize {
        self.left_out.iter().filter(|why| why.is_none()).count()
    }

    /// Counts of orders that are left out, by reason.
    pub fn counts_left_out(&self) -> [(LeftOut, usize); LeftOut::ALL.len()] {
        LeftOut::ALL.map(|why| (why, self.left_out.iter().filter(|of| **of == Some(why)).count()))
    }
}

/// +1 for a purchase, −1 for a sale.
fn sign(side: Side) -> i128 {
    match side {
        Side::Buy => 1,
        Side::Sell => -1,
    }
}

#[cfg(test)]
mod tests;
