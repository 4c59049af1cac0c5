//! A live venue by its number: the position of its row in [`ADAPTERS`].

use crate::adapters::{ADAPTERS, Registration};
use engine::market::terms::Venue;

/// A live venue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(u8);

impl Origin {
    /// All live venues, in the order of their rows.
    pub fn all() -> impl Iterator<Item = Origin> {
        (0..ADAPTERS.len() as u8).map(Origin)
    }

    /// The live venue of a market; `None` for a venue without a row.
    pub const fn of(venue: Venue) -> Option<Origin> {
        let mut number = 0;
        while number < ADAPTERS.len() {
            if ADAPTERS[number].venue as u8 == venue as u8 {
                return Some(Origin(number as u8));
            }
            number += 1;
        }
        None
    }

    /// The live venue with this name.
    pub fn named(name: &str) -> Option<Origin> {
        Origin::all().find(|origin| origin.name() == name)
    }

    /// The name in lines of recordings and in settings.
    pub fn name(self) -> &'static str {
        self.registration().venue.name()
    }

    /// Its row.
    pub fn registration(self) -> &'static Registration {
        &ADAPTERS[self.index()]
    }

    /// The position of its row.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of live venues.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Origins(u32);

/// Every row has a bit.
const _: () = assert!(ADAPTERS.len() <= u32::BITS as usize);

impl Origins {
    /// The venues of the set, in the order of their rows.
    pub fn iter(self) -> impl Iterator<Item = Origin> {
        Origin::all().filter(move |origin| self.contains(*origin))
    }

    /// Whether the venue is in the set.
    pub fn contains(self, origin: Origin) -> bool {
        self.0 & Origins::from(origin).0 != 0
    }

    /// Adds a venue; false if it was in the set.
    pub fn insert(&mut self, origin: Origin) -> bool {
        let is_new = !self.contains(origin);
        self.0 |= Origins::from(origin).0;
        is_new
    }

    /// The venues that are not in `others`.
    pub fn without(self, others: Origins) -> Origins {
        Origins(self.0 & !others.0)
    }

    /// The names, separated by commas, as settings have them.
    pub fn names(self) -> String {
        self.iter().map(Origin::name).collect::<Vec<_>>().join(",")
    }
}

impl From<Origin> for Origins {
    fn from(origin: Origin) -> Origins {
        Origins(1 << origin.0)
    }
}

impl FromIterator<Origin> for Origins {
    fn from_iter<T: IntoIterator<Item = Origin>>(origins: T) -> Origins {
        Origins(origins.into_iter().fold(0, |set, origin| set | Origins::from(origin).0))
    }
}

impl std::fmt::Debug for Origins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// What may be written for live venues, in words: each name, or all of them separated by commas. `quote` is written
/// around each.
pub fn choices(quote: &str) -> String {
    let all: Origins = Origin::all().collect();
    let names = all.iter().map(|origin| format!("{quote}{}{quote}, ", origin.name())).collect::<String>();
    format!("{names}or {quote}{}{quote}", all.names())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_own_venue_and_name() {
        let (mut set, mut cases) = (Origins::default(), 0);
        for origin in Origin::all() {
            assert_eq!(Origin::of(origin.registration().venue), Some(origin), "a venue has two rows");
            assert_eq!(Origin::named(origin.name()), Some(origin));
            assert!(!set.contains(origin) && set.insert(origin) && !set.insert(origin) && set.contains(origin));
            assert_eq!(Origins::from(origin).names(), origin.name());
            assert_eq!(Origins::from(origin).without(set), Origins::default());
            cases += 1;
        }
        assert!(cases > 0 && set.iter().eq(Origin::all()) && set == Origin::all().collect());
        assert_eq!(set.without(Origins::default()), set);
        assert_eq!((Origin::of(Venue::Synthetic), Origin::named("synthetic"), Origin::named("")), (None, None, None));
        assert!(choices("`").ends_with(&format!("or `{}`", set.names())), "{}", choices("`"));
        println!("live venues: {cases} cases");
    }
}
