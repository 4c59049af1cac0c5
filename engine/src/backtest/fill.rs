//! One fill against an archived book: what an order of that moment would have taken (gateway/docs/simulation.md §2, §3).

use super::book::ArchivedPair;
use crate::amount::{Cash, Price, Qty};
use crate::book::walk::{Walk, Want, deviation_bps, walk};
use crate::book::{Effective, EffectiveLevel, EffectiveTop, Offer};
use crate::decide::take::taken_side;
use crate::fee::Tariff;
use crate::order::Side;

/// How a fill takes from a book of the past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FillModel {
    /// The whole size at the mean of the best prices.
    Midpoint,
    /// Up to the size of the best level, at its price.
    TopOfBook,
    /// The walk of a live order (engine/docs/execution.md §3, §4).
    #[default]
    DepthWalk,
    /// The same, less what the same job has taken from a level, until that level changes. For a single fill it is
    /// [`FillModel::DepthWalk`].
    DepthWalkDepletion,
}

/// A fill to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillRequest {
    pub side: Side,
    /// More than 0 and at most [`SHARES_MAX`]; on the grid of 4 decimals.
    pub shares: Qty,
    pub model: FillModel,
    /// Worst price; touching counts. `None`: any.
    pub limit: Option<Price>,
    /// What each level is charged.
    pub tariff: Tariff,
}

/// A computed fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillResult {
    pub filled: Qty,
    pub remaining: Qty,
    /// Average price in 10⁻⁶ USD a share, half up; `None` when nothing was filled.
    pub vwap: Option<Cash>,
    pub fee: Cash,
    /// Levels touched.
    pub levels: u16,
    /// Deviation of the average from the midpoint in 10⁻⁴; `None` when nothing was filled or a side is empty.
    pub slippage_bps: Option<u32>,
    /// Deviation of the average from the best price taken; `None` when nothing was filled.
    pub impact_bps: Option<u32>,
}

/// Most shares of one request.
pub const SHARES_MAX: Qty = Qty::from_shares(1_000_000);

impl FillModel {
    /// All models, in the order of the list.
    pub const ALL: [FillModel; 4] =
        [FillModel::Midpoint, FillModel::TopOfBook, FillModel::DepthWalk, FillModel::DepthWalkDepletion];

    /// Its id on the wire.
    pub fn name(self) -> &'static str {
        match self {
            FillModel::Midpoint => "midpoint",
            FillModel::TopOfBook => "top_of_book",
            FillModel::DepthWalk => "depth_walk",
            FillModel::DepthWalkDepletion => "depth_walk_depletion",
        }
    }

    /// The model of exactly that id.
    pub fn named(name: &str) -> Option<FillModel> {
        FillModel::ALL.into_iter().find(|model| model.name() == name)
    }

    /// Its name for people.
    pub fn label(self) -> &'static str {
        match self {
            FillModel::Midpoint => "Midpoint",
            FillModel::TopOfBook => "Top of book",
            FillModel::DepthWalk => "Depth walk",
            FillModel::DepthWalkDepletion => "Depth walk with depletion",
        }
    }

    /// Whether it fills as a live order would.
    pub fn is_realistic(self) -> bool {
        self.walks_the_book()
    }

    /// Whether every plan has it.
    pub fn is_free(self) -> bool {
        self != FillModel::DepthWalkDepletion
    }

    pub fn description(self) -> &'static str {
        match self {
            FillModel::Midpoint => "The whole size at the mean of the best bid and the best ask; needs both.",
            FillModel::TopOfBook => "At the best price, up to the size there.",
            FillModel::DepthWalk => "Level by level through the book, as a live order fills.",
            FillModel::DepthWalkDepletion => {
                "As depth_walk, less what the same job took from a level, until that level changes."
            }
        }
    }

    /// Whether it takes level by level, not from one level.
    pub fn walks_the_book(self) -> bool {
        matches!(self, FillModel::DepthWalk | FillModel::DepthWalkDepletion)
    }

    /// The level that a model of one level fills at, for an order of this size; `None`: the book has none for it.
    /// `best` is the best level of the side that is taken.
    pub(super) fn level(
        self,
        side: Side,
        shares: Qty,
        top: EffectiveTop,
        best: Option<&EffectiveLevel>,
    ) -> Option<(Price, Qty)> {
        match self {
            FillModel::Midpoint => Some((midpoint(top.bid?, top.ask?, side), shares)),
            _ => best.map(|level| (level.price, level.size())),
        }
    }
}

/// The mean of two prices. A half of the last unit is rounded against the taker: up for a BUY, down for a SELL.
fn midpoint(bid: Price, ask: Price, side: Side) -> Price {
    let sum = u32::from(bid.0) + u32::from(ask.0);
    let half = match side {
        Side::Buy => sum.div_ceil(2),
        Side::Sell => sum / 2,
    };
    Price(half as u16)
}

/// Fills one request against the archived books of a market.
pub fn fill(request: &FillRequest, pair: &ArchivedPair) -> FillResult {
    let effective = pair.effective();
    let walk = walked(request, &effective);
    let vwap = walk.vwap();
    let slippage = |vwap| deviation_bps(vwap, effective.top().midpoint()?);
    FillResult {
        filled: walk.filled,
        remaining: request.shares - walk.filled,
        vwap,
        fee: walk.fee,
        levels: walk.levels,
        slippage_bps: vwap.and_then(slippage),
        impact_bps: walk.impact_bps(),
    }
}

fn walked(request: &FillRequest, effective: &Effective) -> Walk {
    let FillRequest { side, shares, model, limit, tariff } = *request;
    let (taken, want, rows) = (taken_side(side), Want::Shares(shares), &mut Vec::new());
    let levels = effective.side(taken);
    if model.walks_the_book() {
        return walk(levels, taken, want, limit, tariff, rows);
    }
    let level = model.level(side, shares, effective.top(), levels.first());
    walk(level.map(Offer::from), taken, want, limit, tariff, rows)
}

#[cfg(test)]
mod tests;
