//! Bounds on the texts of a listing: journal records have a maximum size, texts of venues do not.

use super::skips::{Skip, Skips};
use engine::market::terms::Listing;

/// Longest id of a market at its venue or of an event, in bytes. A market with a longer id is refused.
const ID_BYTES_MAX: usize = 256;
/// Longest slug, label, outcome, tag or address, in bytes.
const WORD_BYTES_MAX: usize = 1 << 10;
/// Longest question or title, in bytes.
const TITLE_BYTES_MAX: usize = 4 << 10;
/// Longest description, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 16 << 10;
/// Most tags; the recorded markets have up to a dozen.
const TAGS_MAX: usize = 32;

/// Limits the texts of a listing to less than 100 KB together: texts that can be truncated are, other long ones are
/// dropped; both are counted.
///
/// # Errors
/// [`Skip::TextTooLong`] for an id that is too long: a truncated id could be that of another market.
pub fn bounded(mut listing: Listing, skips: &Skips) -> Result<Listing, Skip> {
    if listing.venue_market_id.len() > ID_BYTES_MAX {
        return Err(Skip::TextTooLong);
    }
    let condition = listing.condition.clone();
    let counted = |what: &str| skips.count(Skip::TextTooLong, || format!("{what} of {condition}"));
    let cut = |text: &mut String, bytes_max: usize, what: &str| {
        if text.len() > bytes_max {
            let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or_default());
            counted(what);
        }
    };
    let drop_long = |text: &mut Option<String>, what: &str| {
        if text.take_if(|text| text.len() > WORD_BYTES_MAX).is_some() {
            counted(what);
        }
    };
    if listing.slug.len() > WORD_BYTES_MAX {
        listing.slug.clone_from(&listing.condition);
        counted("slug");
    }
    cut(&mut listing.question, TITLE_BYTES_MAX, "question");
    listing.outcomes.iter_mut().for_each(|outcome| cut(outcome, WORD_BYTES_MAX, "outcome"));
    listing.description.iter_mut().for_each(|text| cut(text, DESCRIPTION_BYTES_MAX, "description"));
    listing.label.iter_mut().for_each(|label| cut(label, WORD_BYTES_MAX, "label"));
    drop_long(&mut listing.image, "image");
    if listing.event.take_if(|event| event.id.len() > ID_BYTES_MAX || event.slug.len() > WORD_BYTES_MAX).is_some() {
        counted("event");
    }
    if let Some(event) = &mut listing.event {
        cut(&mut event.title, TITLE_BYTES_MAX, "title");
        drop_long(&mut event.image, "image of the event");
    }
    let tags_count = listing.tags.len();
    listing.tags.retain(|tag| tag.len() <= WORD_BYTES_MAX);
    listing.tags.truncate(TAGS_MAX);
    if listing.tags.len() < tags_count {
        counted("tags");
    }
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::listing;
    use engine::market::terms::EventTerms;

    #[test]
    fn long_texts_are_truncated_or_dropped_and_long_ids_refused() {
        let event = EventTerms { id: "e".into(), slug: "e".into(), title: "E".into(), image: None, end: None };
        let plain = Listing { event: Some(event), ..listing(7, ["1", "2"]) };
        // Two bytes per character at an odd offset: every bound is inside a character.
        let long = || format!("x{}", "é".repeat(1 << 20));
        type Change = fn(&mut Listing, String);
        let changes: [(&str, Change); 12] = [
            ("slug", |listing, text| listing.slug = text),
            ("question", |listing, text| listing.question = text),
            ("outcome", |listing, text| listing.outcomes[1] = text),
            ("description", |listing, text| listing.description = Some(text)),
            ("image", |listing, text| listing.image = Some(text)),
            ("label", |listing, text| listing.label = Some(text)),
            ("tag", |listing, text| listing.tags.push(text)),
            ("event id", |listing, text| listing.event.iter_mut().for_each(|event| event.id.clone_from(&text))),
            ("event slug", |listing, text| listing.event.iter_mut().for_each(|event| event.slug.clone_from(&text))),
            ("title", |listing, text| listing.event.iter_mut().for_each(|event| event.title.clone_from(&text))),
            ("event image", |listing, text| {
                listing.event.iter_mut().for_each(|event| event.image = Some(text.clone()))
            }),
            ("many tags", |listing, _| listing.tags = (0..100_000).map(|tag| tag.to_string()).collect()),
        ];
        let mut all_long = plain.clone();
        for (what, change) in changes {
            let (skips, mut changed) = (Skips::default(), plain.clone());
            change(&mut changed, long());
            change(&mut all_long, long());
            let kept = bounded(changed, &skips).unwrap_or_else(|_| panic!("{what}"));
            assert_eq!(skips.get(Skip::TextTooLong), 1, "{what}");
            assert_eq!((&kept.condition, &kept.tokens), (&plain.condition, &plain.tokens), "{what}");
        }
        let kept = bounded(all_long, &Skips::default()).expect("its id is short");
        assert!(kept.description.as_ref().is_some_and(|text| text.starts_with("xé") && text.len() > 16_000));
        let mut bytes = Vec::new();
        let mut markets = engine::market::Markets::new();
        for fact in
            markets.list(&kept, engine::market::terms::MarketState::Active, Default::default(), Default::default())
        {
            markets.apply(&fact);
        }
        markets.encode(&mut bytes);
        assert!(bytes.len() < 100_000, "{} bytes", bytes.len());

        let (skips, mut refused) = (Skips::default(), plain.clone());
        refused.venue_market_id = long();
        assert_eq!(bounded(refused, &skips).err(), Some(Skip::TextTooLong));
        assert_eq!(bounded(plain.clone(), &skips).ok(), Some(plain));
        assert_eq!(skips.total(), 0);
        println!("long texts: {} cases", changes.len() + 3);
    }
}
