//! Maps a venue's categories and tags to the eleven fee categories (engine/docs/execution.md §5,
//! gateway/docs/live-venues.md §2.2, §6).
//!
//! The configuration adds names (`[fees.category_map]`). They have precedence over the built-in words, and among the
//! tags of a market over its other tags. They do not change the eleven names and up-or-down markets. A market keeps the
//! category of its first listing.

use engine::market::terms::{Asset, Category};
use std::sync::Arc;

/// Names of the configuration, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Arc<[(String, Category)]>);

impl FromIterator<(String, Category)> for Names {
    fn from_iter<T: IntoIterator<Item = (String, Category)>>(names: T) -> Names {
        Names(names.into_iter().collect())
    }
}

impl Names {
    /// The category that the configuration gives a name, unless it is one of the eleven.
    pub fn added(&self, name: &str) -> Option<Category> {
        let name = name.trim().to_lowercase();
        let (_, category) = self.0.iter().find(|(added, _)| *added == name)?;
        Category::named(&name).is_none().then_some(*category)
    }

    /// The category of a name from any source: one of the eleven, an added one, or a built-in word.
    pub fn named(&self, name: &str) -> Option<Category> {
        self.added(name).or_else(|| named(name))
    }

    /// The category of the first tag that is an added name.
    pub fn among<'a>(&self, mut tags: impl Iterator<Item = &'a str>) -> Option<Category> {
        tags.find_map(|tag| self.added(tag))
    }

    /// The category of a market by its tag slugs. `sports`: the market has the venue's sports fields. An up-or-down
    /// market is mapped by its asset, since its tag covers both coins and stock indices.
    pub fn of_tags<'a>(
        &self,
        tags: impl Iterator<Item = &'a str> + Clone,
        sports: bool,
        updown: Option<Asset>,
    ) -> Option<Category> {
        updown.map(of_asset).or_else(|| self.among(tags.clone())).or_else(|| {
            let row = TAGS.iter().find(|(category, slugs)| {
                (*category == Category::Sports && sports) || tags.clone().any(|tag| slugs.contains(&tag))
            });
            row.map(|(category, _)| *category)
        })
    }
}

fn named(name: &str) -> Option<Category> {
    let name = name.trim().to_ascii_lowercase();
    Category::named(&name).or_else(|| {
        Some(match name.as_str() {
            "technology" | "science" | "ai" => Category::Tech,
            "business" | "earnings" | "stocks" => Category::Finance,
            "economy" | "fed" => Category::Economics,
            "pop-culture" | "entertainment" | "movies" | "music" => Category::Culture,
            "elections" => Category::Politics,
            "world" | "war" => Category::Geopolitics,
            "general" => Category::Other,
            _ => return None,
        })
    })
}

/// Tag slugs by category; the first row with a tag of the market applies.
const TAGS: [(Category, &[&str]); 10] = [
    (Category::Geopolitics, &["geopolitics", "world", "middle-east", "ukraine"]),
    (Category::Crypto, &["crypto", "bitcoin", "ethereum", "solana", "xrp", "crypto-prices", "up-or-down"]),
    (Category::Sports, &["sports"]),
    (Category::Mentions, &["mentions"]),
    (Category::Politics, &["politics", "elections", "us-elections"]),
    (Category::Finance, &["finance", "stocks", "earnings", "business"]),
    (Category::Economics, &["economy", "fed", "inflation", "economics"]),
    (Category::Tech, &["tech", "ai", "science"]),
    (Category::Culture, &["pop-culture", "culture", "movies", "music"]),
    (Category::Weather, &["weather", "climate"]),
];

/// Crypto for coins, finance for stock indices.
pub fn of_asset(asset: Asset) -> Category {
    match asset {
        Asset::Btc | Asset::Eth | Asset::Sol | Asset::Xrp => Category::Crypto,
        Asset::Spx | Asset::Ndx => Category::Finance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tags_map_to_the_eleven_categories() {
        let none = Names::default();
        for (name, expected) in [
            ("Sports", Some(Category::Sports)),
            ("TECHNOLOGY", Some(Category::Tech)),
            ("war", Some(Category::Geopolitics)),
            ("general", Some(Category::Other)),
            ("US-current-affairs", None),
            ("", None),
        ] {
            assert_eq!(none.named(name), expected, "{name}");
        }
        for (tags, sports, updown, expected) in [
            (vec!["politics", "ukraine"], false, None, Some(Category::Geopolitics)),
            (vec!["politics"], true, None, Some(Category::Sports)),
            (vec!["crypto"], true, None, Some(Category::Crypto)),
            (vec!["fed", "stocks"], false, None, Some(Category::Finance)),
            (vec!["hockey"], false, None, None),
            (vec![], false, Some(Asset::Ndx), Some(Category::Finance)),
            (vec!["up-or-down"], false, Some(Asset::Ndx), Some(Category::Finance)),
            (vec!["up-or-down"], false, None, Some(Category::Crypto)),
        ] {
            assert_eq!(none.of_tags(tags.iter().copied(), sports, updown), expected, "{tags:?}");
        }
    }

    #[test]
    fn added_names_have_precedence_over_builtin_words() {
        let added = [("e-sports", Category::Sports), ("science", Category::Other), ("crypto", Category::Tech)];
        let names: Names = added.iter().map(|(name, category)| ((*name).to_owned(), *category)).collect();
        for (name, expected) in [
            (" E-Sports ", Some(Category::Sports)),
            ("science", Some(Category::Other)),
            ("ai", Some(Category::Tech)),
            // One of the eleven names keeps its meaning.
            ("crypto", Some(Category::Crypto)),
            ("chess", None),
        ] {
            assert_eq!(names.named(name), expected, "{name}");
        }
        for (tags, updown, expected) in [
            (&["politics", "e-sports"][..], None, Some(Category::Sports)),
            (&["crypto"], None, Some(Category::Crypto)),
            (&["e-sports"], Some(Asset::Btc), Some(Category::Crypto)),
            (&["chess"], None, None),
        ] {
            assert_eq!(names.of_tags(tags.iter().copied(), false, updown), expected, "{tags:?}");
        }
    }
}
