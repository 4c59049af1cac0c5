//! The lasting fields of a Polymarket market as a listing (gateway/docs/live-venues.md §2.1, §2.2).

use super::dto;
use crate::category::Names;
use crate::loose::{Fault, Loose};
use crate::skips::Skip;
use engine::amount::TickSize;
use engine::market::terms::{Category, EventTerms, Listing, UpDown, Venue};
use engine::time::Timestamp;
use wire::updown;

/// The tick of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    Known(TickSize),
    /// Stored as the nearest engine tick, but the market is not tradable.
    Unknown(TickSize),
}

/// Parses a tick; a missing one means 0.01, as in old rows.
pub(super) fn tick(field: Loose<'_>) -> Tick {
    match field.tick() {
        Ok(tick) if is_known(tick) => Tick::Known(tick),
        Ok(other) => Tick::Unknown(other),
        Err(Fault::Missing) => Tick::Known(TickSize(100)),
        Err(_) => Tick::Unknown(TickSize(100)),
    }
}

/// Whether the engine supports trading on this tick.
pub(super) fn is_known(tick: TickSize) -> bool {
    matches!(tick.0, 1_000 | 100 | 50 | 25 | 10 | 1)
}

impl Tick {
    pub(super) fn size(self) -> TickSize {
        match self {
            Tick::Known(tick) | Tick::Unknown(tick) => tick,
        }
    }
}

/// A Gamma row as a listing, or the reason why it is skipped. `parent` is the event that contains it.
pub(super) fn of_gamma(
    row: &dto::GammaMarket<'_>,
    parent: Option<&dto::GammaEvent<'_>>,
    names: &Names,
) -> Result<Listing, Skip> {
    let own_event = row.events.elements().and_then(|events| events.first()?.object::<dto::GammaEvent<'_>>());
    let event = parent.copied().or(own_event).unwrap_or_default();
    let mut tags = tags(row.tags);
    if tags.is_empty() {
        tags = self::tags(event.tags);
    }
    let sports =
        [row.sports_market_type, row.game_id, row.line, event.game_id].iter().any(|field| field.filled().is_some());
    let slug = row.slug.owned();
    let end = row.end_date.instant();
    let window = slug.as_deref().and_then(|slug| window(slug, row.event_start_time.instant(), end));
    let (start, end) = match window {
        Some(window) => (Some(window.start), Some(window.end)),
        None => (row.event_start_time.instant().or(row.start_date.instant()), end),
    };
    let named = |field: Loose<'_>| field.text().and_then(|name| names.named(&name));
    let by_fee = row.fee_type.text().and_then(|kind| names.named(kind.split('_').next().unwrap_or_default()));
    let category = by_fee.or_else(|| named(row.category)).or_else(|| named(event.category));
    build(
        Parts {
            id: row.id.owned(),
            condition: row.condition_id.owned(),
            tokens: row.clob_token_ids,
            outcomes: row.outcomes,
            slug,
            question: row.question.owned(),
            description: row.description.owned(),
            image: row.image.or(row.icon).owned(),
            label: row.group_item_title.owned(),
            category,
            tags,
            event: event_terms(&event),
            tick: row.order_price_min_tick_size,
            min_size: row.order_min_size,
            neg_risk: row.neg_risk.flag(),
            start,
            end,
            updown: window,
            sports,
        },
        names,
    )
}

/// The threshold of an up-or-down market: that of its row, and that of its event.
pub(super) fn strike_of_gamma(
    row: &dto::GammaMarket<'_>,
    parent: Option<&dto::GammaEvent<'_>>,
) -> Option<(Option<String>, Option<String>)> {
    updown::family(&row.slug.text()?)?;
    let own_event = row.events.elements().and_then(|events| events.first()?.object::<dto::GammaEvent<'_>>());
    let event = parent.copied().or(own_event).unwrap_or_default();
    let metadata: dto::EventMetadata<'_> = event.event_metadata.object().unwrap_or_default();
    // 0 means that there is no threshold.
    let decimal = |field: Loose<'_>| {
        let text = field.owned()?;
        let plain = text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        (plain && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte))).then_some(text)
    };
    let strike = (decimal(row.group_item_threshold), decimal(metadata.price_to_beat));
    (strike != (None, None)).then_some(strike)
}

/// A row of the order book's service as a listing.
pub(super) fn of_clob(row: &dto::ClobMarket<'_>, names: &Names) -> Result<Listing, Skip> {
    let tokens = row.tokens.elements().unwrap_or_default();
    let tokens: Vec<dto::ClobToken<'_>> = tokens.into_iter().filter_map(|token| token.object()).collect();
    let texts = |field: fn(&dto::ClobToken<'_>) -> Option<String>| -> String {
        let texts: Vec<String> = tokens.iter().filter_map(field).collect();
        serde_json::to_string(&texts).unwrap_or_default()
    };
    let (ids, outcomes) = (texts(|token| token.token_id.owned()), texts(|token| token.outcome.owned()));
    let slug = row.market_slug.owned();
    let end = row.end_date_iso.instant();
    let window = slug.as_deref().and_then(|slug| window(slug, None, end));
    build(
        Parts {
            id: row.condition_id.owned(),
            condition: row.condition_id.owned(),
            tokens: Loose::of(&ids),
            outcomes: Loose::of(&outcomes),
            slug,
            question: row.question.owned(),
            description: row.description.owned(),
            image: row.image.or(row.icon).owned(),
            label: None,
            category: None,
            tags: tags(row.tags),
            event: None,
            tick: row.minimum_tick_size,
            min_size: row.minimum_order_size,
            neg_risk: row.neg_risk.flag(),
            start: window.map(|window| window.start),
            end: window.map(|window| window.end).or(end),
            updown: window,
            sports: false,
        },
        names,
    )
}

/// A `new_market` message as a listing.
pub(super) fn of_message(message: &dto::Message<'_>, names: &Names) -> Result<Listing, Skip> {
    let event: dto::GammaEvent<'_> = message.event_message.object().unwrap_or_default();
    let slug = message.slug.owned();
    let window = slug.as_deref().and_then(|slug| window(slug, None, None));
    build(
        Parts {
            id: message.id.owned(),
            condition: message.condition_id.or(message.market).owned(),
            tokens: message.clob_token_ids.or(message.assets_ids),
            outcomes: message.outcomes,
            slug,
            question: message.question.owned(),
            description: message.description.owned(),
            image: None,
            label: message.group_item_title.owned(),
            category: None,
            tags: tags(message.tags),
            event: event_terms(&event),
            tick: message.order_price_min_tick_size,
            min_size: Loose::default(),
            neg_risk: None,
            start: window.map(|window| window.start),
            end: window.map(|window| window.end),
            updown: window,
            sports: [message.sports_market_type, message.line].iter().any(|field| field.filled().is_some()),
        },
        names,
    )
}

/// The common fields of the three shapes.
struct Parts<'a> {
    id: Option<String>,
    condition: Option<String>,
    tokens: Loose<'a>,
    outcomes: Loose<'a>,
    slug: Option<String>,
    question: Option<String>,
    description: Option<String>,
    image: Option<String>,
    label: Option<String>,
    /// By the venue's name; if it is unknown, tags decide.
    category: Option<Category>,
    tags: Vec<String>,
    event: Option<EventTerms>,
    tick: Loose<'a>,
    min_size: Loose<'a>,
    neg_risk: Option<bool>,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    updown: Option<UpDown>,
    sports: bool,
}

fn build(parts: Parts<'_>, names: &Names) -> Result<Listing, Skip> {
    let condition = parts.condition.map(|condition| condition.to_ascii_lowercase()).ok_or(Skip::MissingField)?;
    let digits = condition.strip_prefix("0x").ok_or(Skip::BadNumber)?;
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Skip::BadNumber);
    }
    let tokens = parts.tokens.texts().ok_or(Skip::MissingField)?;
    // Abbreviated rows have no outcomes; those of a binary market are Yes and No.
    let outcomes = parts.outcomes.texts().unwrap_or_else(|| vec!["Yes".into(), "No".into()]);
    let tokens = <[String; 2]>::try_from(tokens).map_err(|_| Skip::NotBinary)?;
    let outcomes = <[String; 2]>::try_from(outcomes).map_err(|_| Skip::NotBinary)?;
    const TOKEN_DIGITS_MAX: usize = 80;
    let decimal = |token: &String| token.len() <= TOKEN_DIGITS_MAX && token.bytes().all(|byte| byte.is_ascii_digit());
    if !tokens.iter().all(decimal) || tokens[0] == tokens[1] {
        return Err(Skip::BadNumber);
    }
    let slug = parts.slug.unwrap_or_else(|| condition.clone());
    let asset = parts.updown.map(|window| window.asset);
    let tagged = || names.of_tags(parts.tags.iter().map(String::as_str), parts.sports, asset);
    Ok(Listing {
        venue: Venue::Polymarket,
        venue_market_id: parts.id.unwrap_or_else(|| condition.clone()),
        condition,
        tokens,
        outcomes,
        question: parts.question.unwrap_or_else(|| slug.clone()),
        slug,
        description: parts.description,
        image: parts.image,
        label: parts.label,
        category: parts.category.or_else(tagged).unwrap_or(Category::Other),
        tags: parts.tags,
        event: parts.event,
        tick: tick(parts.tick).size(),
        min_order_size: parts.min_size.qty().ok(),
        neg_risk: parts.neg_risk.unwrap_or(false),
        start: parts.start,
        end: parts.end,
        updown: parts.updown,
        sports: parts.sports,
    })
}

fn event_terms(event: &dto::GammaEvent<'_>) -> Option<EventTerms> {
    let id = event.id.owned()?;
    let slug = event.slug.owned().unwrap_or_else(|| id.clone());
    Some(EventTerms {
        title: event.title.owned().unwrap_or_else(|| slug.clone()),
        image: event.image.or(event.icon).owned(),
        end: event.end_date.instant(),
        id,
        slug,
    })
}

/// Slugs of tags; plain texts are converted to slugs.
fn tags(field: Loose<'_>) -> Vec<String> {
    let read = |elements: &[Loose<'_>]| {
        let slug = |element: &Loose<'_>| match element.owned() {
            Some(text) => Some(text),
            None => {
                let tag: dto::Tag<'_> = element.object()?;
                tag.slug.or(tag.label).owned()
            }
        };
        let slugs = elements.iter().filter_map(slug);
        slugs.map(|text| text.trim().to_lowercase().replace(' ', "-")).collect()
    };
    field.with_elements(read).unwrap_or_default()
}

/// The window of an up-or-down market: its dates, completed by the slug.
fn window(slug: &str, start: Option<Timestamp>, end: Option<Timestamp>) -> Option<UpDown> {
    let family = updown::family(slug)?;
    let length = updown::length(family.interval);
    let before = |end: Timestamp| end.0.checked_sub(length).map(Timestamp);
    let start = start.or(family.start).or(end.and_then(before))?;
    let end = end.unwrap_or(start.plus(length));
    (start < end).then_some(UpDown { asset: family.asset, interval: family.interval, start, end })
}
