//! The venue's names of categories (gateway/docs/live-venues.md §6).

use crate::category::Names;
use engine::market::terms::Category;

/// The category of an event or series. Names of the configuration have precedence.
pub fn category(names: &Names, name: &str) -> Category {
    names.added(name).unwrap_or_else(|| built_in(name))
}

fn built_in(name: &str) -> Category {
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
    fn names_have_a_category() {
        let none = Names::default();
        let added = [("e-sports", Category::Sports), ("crypto", Category::Tech)];
        let names: Names = added.iter().map(|(name, category)| ((*name).to_owned(), *category)).collect();
        let cases = [
            (&none, "Science and Technology", Category::Tech),
            (&none, "Commodities", Category::Finance),
            (&none, "Transportation", Category::Other),
            (&names, "E-sports", Category::Sports),
            // One of the eleven names keeps its meaning.
            (&names, "Crypto", Category::Crypto),
            (&names, "World", Category::Geopolitics),
        ];
        for (names, name, expected) in cases {
            assert_eq!(category(names, name), expected, "{name}");
        }
        println!("categories: {} cases", cases.len());
    }
}
