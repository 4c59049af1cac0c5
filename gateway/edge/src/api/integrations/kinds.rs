//! Names of the kinds of alerts (gateway/docs/integrations.md §1).

use crate::http::scalar::words;
use engine::user::alerts::{AlertKind, AlertKinds};
use wire::fields::Body;
use wire::value::Value;

/// In the order of [`AlertKind::ALL`].
pub const NAMES: [&str; 12] = [
    "order_filled",
    "order_partially_filled",
    "order_cancelled",
    "order_expired",
    "position_settled",
    "market_resolved_watch",
    "daily_limit_reached",
    "low_balance",
    "key_created",
    "key_rotated",
    "backtest_finished",
    "system_notice",
];

words! {
    /// A kind of alert.
    pub EventType in &NAMES;
}

pub fn name(kind: AlertKind) -> &'static str {
    NAMES[kind as usize]
}

pub fn named(name: &str) -> Option<AlertKind> {
    NAMES.iter().position(|known| *known == name).map(|at| AlertKind::ALL[at])
}

/// The kinds of a set, in their order.
pub fn listed(kinds: AlertKinds) -> Vec<EventType> {
    kinds.iter().map(|kind| name(kind).into()).collect()
}

/// `event_types` of a body: a list of names, or null for all; `None` without it, and, with a problem, for another value.
pub fn in_body(value: &Value<'_>, body: &mut Body<'_, '_>) -> Option<AlertKinds> {
    let (kind, message) = match value.get("event_types")? {
        Value::Null => return Some(AlertKinds::ALL),
        Value::Array(items) => {
            let known = |item: &Value<'_>| match item {
                Value::Text(name) => named(name),
                _ => None,
            };
            match items.iter().map(known).collect::<Option<Vec<_>>>() {
                Some(kinds) => return Some(AlertKinds::of(&kinds)),
                None => ("literal_error", format!("must hold only {}", NAMES.join(", "))),
            }
        }
        other => ("list_type", format!("is {}, not a list", other.kind())),
    };
    body.problems.add("body", "event_types", kind, message);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_name() {
        for (kind, expected) in AlertKind::ALL.into_iter().zip(NAMES) {
            assert_eq!((name(kind), named(expected)), (expected, Some(kind)));
            // As the variants are named.
            assert_eq!(format!("{kind:?}").to_lowercase(), expected.replace('_', ""));
        }
        assert_eq!(named("ORDER_FILLED"), None);
        assert_eq!(listed(AlertKinds::ALL).len(), 12);
    }

    #[test]
    fn a_set_is_a_list_of_names_or_null() {
        let rows = [
            ("{}", None, false),
            (r#"{"event_types":null}"#, Some(AlertKinds::ALL), false),
            (r#"{"event_types":[]}"#, Some(AlertKinds::default()), false),
            (r#"{"event_types":["low_balance","low_balance"]}"#, Some(AlertKinds::of(&[AlertKind::LowBalance])), false),
            (r#"{"event_types":["nothing"]}"#, None, true),
            (r#"{"event_types":["Low_Balance"]}"#, None, true),
            (r#"{"event_types":[1]}"#, None, true),
            (r#"{"event_types":"low_balance"}"#, None, true),
            (r#"{"event_types":{}}"#, None, true),
        ];
        for (text, expected, is_wrong) in &rows {
            let value = wire::read::json(text.as_bytes()).expect("JSON");
            let mut body = Body::new(&value);
            assert_eq!(in_body(&value, &mut body), *expected, "{text}");
            assert_eq!(!body.problems.is_empty(), *is_wrong, "{text}");
        }
        println!("event types: {} cases", rows.len());
    }
}
