//! Realism: named sets of settings, and the part of a set that an order keeps (engine/docs/execution.md §16).
//!
//! A set is chosen per key. What it says of fills is fixed in the terms of each order at its placement, so neither a
//! replay nor a resting order needs the set again.

use crate::amount::Bps;
use crate::describe::record;
use wincode::{SchemaRead, SchemaWrite};

/// The whole of a level or of a share, in 10⁻⁴.
pub const WHOLE: Bps = Bps(10_000);
/// Largest exponent of [`FillModel::QueueProb`].
pub const EXPONENT_MAX: u16 = 3;
/// Longest window in which a trade explains a smaller level, ms.
pub const MATCH_WINDOW_MS_MAX: u32 = 10_000;
/// Longest half-life of the confidence in a place, s.
pub const HALF_LIFE_S_MAX: u32 = 86_400;
/// Smallest part of a level that walks may take, in 10⁻⁴.
pub const DEPTH_SHARE_MIN: Bps = Bps(100);
/// Longest name of a set in characters.
pub const SET_NAME_CHARS_MAX: usize = 64;

/// When a resting order fills. It always fills at its own limit, as maker, without a fee.
#[derive(Clone, Debug, Default, PartialEq, Eq, SchemaWrite, SchemaRead, Copy, PartialOrd, Ord, Hash)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum FillModel {
    /// In a matching cycle, when the effective book touches or crosses its limit. Trades of the venue fill nothing.
    Touch,
    /// As [`FillModel::Touch`], and immediately when the venue trades through its limit by a tick or more, up to the
    /// size of that trade.
    #[default]
    Cross,
    /// When the book or a trade of the venue is beyond its limit by a tick or more.
    Through,
    /// As [`FillModel::Touch`]; by every trade beyond its limit; and by a trade at its limit beyond the shares that were
    /// there before it. Cancelled shares count as those after it, but for `cancel_share`.
    Queue,
    /// As [`FillModel::Queue`], with cancelled shares before it by the odds of its place.
    QueueProb,
}

record! {
    (Copy)
    /// How an order fills, fixed at its placement.
    pub struct FillTerms {
        pub model: FillModel,
        /// Exponent of the odds of a place, 1 to 3: `QueueProb` only.
        pub n: u16,
        /// Part of cancelled shares that were before the order in proportion to its place: `Queue` only.
        pub cancel_share: Bps,
        /// Part of each level that its walks may take.
        pub depth_share: Bps,
        /// How long a trade explains a smaller level, before and after.
        pub match_window_ms: u32,
        /// Time in which the confidence in its place halves.
        pub half_life_s: u32,
    }
}

/// A named set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealismSet {
    pub name: Box<str>,
    pub fill: FillTerms,
}

/// The sets of a server, and the one of keys without a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealismSets {
    sets: Vec<RealismSet>,
    default: usize,
}

impl FillModel {
    pub const ALL: [FillModel; 5] =
        [FillModel::Touch, FillModel::Cross, FillModel::Through, FillModel::Queue, FillModel::QueueProb];

    /// Its name in the configuration and in answers.
    pub fn name(self) -> &'static str {
        match self {
            FillModel::Touch => "touch",
            FillModel::Cross => "cross",
            FillModel::Through => "through",
            FillModel::Queue => "queue",
            FillModel::QueueProb => "queue_prob",
        }
    }

    /// The model with this name.
    pub fn named(name: &str) -> Option<FillModel> {
        FillModel::ALL.into_iter().find(|model| model.name() == name)
    }

    /// Whether an order has a place in the queue of its level.
    pub fn is_queued(self) -> bool {
        matches!(self, FillModel::Queue | FillModel::QueueProb)
    }
}

impl FillTerms {
    /// Those of the set `kind`, and of an order without any.
    pub const KIND: FillTerms = FillTerms {
        model: FillModel::Cross,
        n: 2,
        cancel_share: Bps(0),
        depth_share: WHOLE,
        match_window_ms: 1_000,
        half_life_s: 60,
    };

    /// Whether every number is within its bounds.
    pub fn is_sound(&self) -> bool {
        (1..=EXPONENT_MAX).contains(&self.n)
            && self.cancel_share <= WHOLE
            && (DEPTH_SHARE_MIN..=WHOLE).contains(&self.depth_share)
            && self.match_window_ms <= MATCH_WINDOW_MS_MAX
            && (1..=HALF_LIFE_S_MAX).contains(&self.half_life_s)
    }
}

impl Default for FillTerms {
    fn default() -> Self {
        FillTerms::KIND
    }
}

impl Default for RealismSets {
    /// The built-in sets; keys without a choice have `kind`.
    fn default() -> Self {
        let set = |name: &str, fill| RealismSet { name: name.into(), fill };
        let (kind, depth) = (FillTerms::KIND, |bps| Bps(bps));
        RealismSets {
            sets: vec![
                set("kind", kind),
                set("venue", FillTerms { model: FillModel::QueueProb, n: 2, ..kind }),
                set("thin", FillTerms { model: FillModel::Queue, depth_share: depth(5_000), ..kind }),
                set("brutal", FillTerms { model: FillModel::Through, depth_share: depth(2_500), ..kind }),
            ],
            default: 0,
        }
    }
}

impl RealismSets {
    /// The set with this name.
    pub fn get(&self, name: &str) -> Option<&RealismSet> {
        self.sets.iter().find(|set| &*set.name == name)
    }

    /// The set of keys without a choice.
    pub fn chosen_by_default(&self) -> &RealismSet {
        &self.sets[self.default]
    }

    /// All sets, the built-in ones first.
    pub fn iter(&self) -> impl Iterator<Item = &RealismSet> + '_ {
        self.sets.iter()
    }

    /// The names of all sets, separated by commas: for refusals.
    pub fn names(&self) -> String {
        self.sets.iter().map(|set| &*set.name).collect::<Vec<_>>().join(", ")
    }

    /// Adds a set. False: there is one with this name, or a number is out of bounds.
    pub fn add(&mut self, set: RealismSet) -> bool {
        let is_new = self.get(&set.name).is_none() && set.fill.is_sound();
        if is_new {
            self.sets.push(set);
        }
        is_new
    }

    /// Makes a set that of keys without a choice. False: there is none with this name.
    pub fn choose_by_default(&mut self, name: &str) -> bool {
        match self.sets.iter().position(|set| &*set.name == name) {
            Some(at) => {
                self.default = at;
                true
            }
            None => false,
        }
    }

    /// Sets the fill model of `kind`.
    pub fn set_kind_model(&mut self, model: FillModel) {
        self.sets[0].fill.model = model;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_sets_are_those_of_the_table() {
        let sets = RealismSets::default();
        let rows = [
            ("kind", FillModel::Cross, 10_000),
            ("venue", FillModel::QueueProb, 10_000),
            ("thin", FillModel::Queue, 5_000),
            ("brutal", FillModel::Through, 2_500),
        ];
        for (name, model, depth) in rows {
            let fill = sets.get(name).expect("built in").fill;
            let shared = (fill.n, fill.cancel_share, fill.match_window_ms, fill.half_life_s);
            assert_eq!((fill.model, fill.depth_share.0, shared), (model, depth, (2, Bps(0), 1_000, 60)), "{name}");
            assert!(fill.is_sound());
        }
        assert_eq!((sets.names().as_str(), &*sets.chosen_by_default().name), ("kind, venue, thin, brutal", "kind"));
        println!("built-in sets: {} cases", rows.len());
    }

    #[test]
    fn sets_are_added_once_and_within_bounds() {
        let mut sets = RealismSets::default();
        let kind = FillTerms::KIND;
        let rows = [
            ("mine", kind, true),
            ("mine", kind, false),
            ("venue", kind, false),
            ("n0", FillTerms { n: 0, ..kind }, false),
            ("n3", FillTerms { n: 3, ..kind }, true),
            ("n4", FillTerms { n: 4, ..kind }, false),
            ("share", FillTerms { cancel_share: Bps(10_001), ..kind }, false),
            ("all", FillTerms { cancel_share: WHOLE, ..kind }, true),
            ("depth", FillTerms { depth_share: Bps(99), ..kind }, false),
            ("shallow", FillTerms { depth_share: Bps(100), ..kind }, true),
            ("deep", FillTerms { depth_share: Bps(10_001), ..kind }, false),
            ("window", FillTerms { match_window_ms: 10_001, ..kind }, false),
            ("now", FillTerms { match_window_ms: 0, ..kind }, true),
            ("life", FillTerms { half_life_s: 0, ..kind }, false),
            ("long", FillTerms { half_life_s: 86_401, ..kind }, false),
        ];
        for (name, fill, is_added) in rows {
            assert_eq!(sets.add(RealismSet { name: name.into(), fill }), is_added, "{name}");
        }
        assert!(sets.choose_by_default("mine") && !sets.choose_by_default("theirs"));
        assert_eq!(&*sets.chosen_by_default().name, "mine");
        for model in FillModel::ALL {
            assert_eq!(FillModel::named(model.name()), Some(model));
        }
        assert_eq!(FillModel::named("Queue"), None);
        println!("sets: {} cases", rows.len() + FillModel::ALL.len());
    }
}
