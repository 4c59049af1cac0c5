//! From what venues call a subject to the eleven fee categories (execution.md §5, upstream.md §2.2 and §6).

use engine::market::terms::{Asset, Category};

/// The category of a name as any source writes it: one of the eleven, or a word that stands for one.
pub fn named(name: &str) -> Option<Category> {
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

/// Tag slugs by category; the first row with a tag of the market decides.
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

/// The category that tag slugs tell. `sports` says whether the market carries the venue's sports fields; an up-or-down
/// market goes by its asset, since the tag of that name covers coins and stock indices alike.
pub fn of_tags<'a>(
    tags: impl Iterator<Item = &'a str> + Clone,
    sports: bool,
    updown: Option<Asset>,
) -> Option<Category> {
    updown.map(of_asset).or_else(|| {
        let row = TAGS.iter().find(|(category, slugs)| {
            (*category == Category::Sports && sports) || tags.clone().any(|tag| slugs.contains(&tag))
        });
        row.map(|(category, _)| *category)
    })
}

/// Crypto for coins, finance for stock indices.
pub fn of_asset(asset: Asset) -> Category {
    match asset {
        Asset::Btc | Asset::Eth | Asset::Sol | Asset::Xrp => Category::Crypto,
        Asset::Spx | Asset::Ndx => Category::Finance,
    }
}

/// The category of a Kalshi event or series.
pub fn of_kalshi(name: &str) -> Category {
    match name.trim().to_ascii_lowercase().as_str() {
        "politics" | "elections" => Category::Politics,
        "world" => Category::Geopolitics,
        "crypto" => Category::Crypto,
        "economics" => Category::Economics,
        "financials" | "commodities" => Category::Finance,
        "companies" | "science and technology" => Category::Tech,
        "climate and weather" => Category::Weather,
        "sports" => Category::Sports,
        "entertainment" => Category::Culture,
        "mentions" => Category::Mentions,
        _ => Category::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tags_lead_to_the_eleven() {
        for (name, expected) in [
            ("Sports", Some(Category::Sports)),
            ("TECHNOLOGY", Some(Category::Tech)),
            ("war", Some(Category::Geopolitics)),
            ("general", Some(Category::Other)),
            ("US-current-affairs", None),
            ("", None),
        ] {
            assert_eq!(named(name), expected, "{name}");
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
            assert_eq!(of_tags(tags.iter().copied(), sports, updown), expected, "{tags:?}");
        }
        assert_eq!(of_kalshi("Science and Technology"), Category::Tech);
        assert_eq!(of_kalshi("Commodities"), Category::Finance);
        assert_eq!(of_kalshi("Transportation"), Category::Other);
    }
}
