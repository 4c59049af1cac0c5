//! Splits long responses: a page of a catalogue holds hundreds of markets, and the feed translates one capture without
//! a pause while changes of books wait.

use crate::loose::Loose;
use crate::rest_path;
use std::collections::HashMap;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// Responses up to this size stay whole. Parts of longer ones have at most this size, unless a single row is longer.
pub const PART_BYTES: usize = 64 << 10;

/// Whether the response to this call is a page of a catalogue. Its rows are independent, so other frames may come
/// between them.
pub fn is_catalogue(url: &str) -> bool {
    matches!(rest_path(url).last(), Some(&"events" | &"markets"))
}

/// The parts of a page, each of the same shape as the whole; `None` if it is short or not a plain list of rows.
pub fn parts(body: &str) -> Option<Vec<Utf8Bytes>> {
    if body.len() <= PART_BYTES {
        return None;
    }
    let (name, rows) = rows(body.trim())?;
    let (begins, ends) = match name {
        Some(name) => (format!("{{\"{name}\":["), "]}"),
        None => ("[".to_owned(), "]"),
    };
    let (mut parts, mut part) = (Vec::new(), begins.clone());
    for row in rows {
        if part.len() > begins.len() {
            if part.len() + row.raw().len() > PART_BYTES {
                part.push_str(ends);
                parts.push(std::mem::replace(&mut part, begins.clone()).into());
            } else {
                part.push(',');
            }
        }
        part.push_str(row.raw());
    }
    part.push_str(ends);
    parts.push(part.into());
    (parts.len() > 1).then_some(parts)
}

/// The rows of a page, and the name of the field that holds them. Its other fields are not about markets (next cursor,
/// count).
fn rows(body: &str) -> Option<(Option<&'static str>, Vec<Loose<'_>>)> {
    const NAMES: [&str; 3] = ["events", "markets", "data"];
    if body.starts_with('[') {
        return Some((None, Loose::of(body).elements()?));
    }
    let fields: HashMap<&str, Loose<'_>> = Loose::of(body).object()?;
    let mut nested = fields.iter().filter(|(_, field)| field.raw().starts_with(['[', '{']));
    let (name, rows) = nested.next()?;
    let name = NAMES.into_iter().find(|known| known == name)?;
    if nested.next().is_some() {
        return None;
    }
    Some((Some(name), rows.elements()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_long_page_is_cut_between_its_rows_and_nothing_else_is() {
        let row = |number: usize, bytes: usize| format!(r#"{{"n":{number},"t":"{}"}}"#, "é,{[".repeat(bytes / 5));
        let rows =
            |count: usize, bytes: usize| (0..count).map(|number| row(number, bytes)).collect::<Vec<_>>().join(" , ");
        let cases = [
            // body, number of parts
            (format!("[{}]", rows(100, 5_000)), Some(8)),
            (format!(r#"{{"events":[{}],"next_cursor":"x","limit":100}}"#, rows(100, 5_000)), Some(8)),
            (format!("\n{{\"cursor\":null,\"markets\":\n[{}]}} ", rows(100, 5_000)), Some(8)),
            (format!(r#"{{"data":[{}]}}"#, rows(3, 500_000)), Some(3)),
            // Short, a single row, or more than one list.
            (format!("[{}]", rows(10, 5_000)), None),
            (format!(r#"{{"markets":[{}]}}"#, rows(1, 500_000)), None),
            (format!(r#"{{"event":{{}},"markets":[{}]}}"#, rows(100, 5_000)), None),
            (format!(r#"{{"events":[],"markets":[{}]}}"#, rows(100, 5_000)), None),
            (format!(r#"{{"series":[{}]}}"#, rows(100, 5_000)), None),
            (format!(r#"{{"markets":{{"a":[{}]}}}}"#, rows(100, 5_000)), None),
            (format!("[{}", rows(100, 5_000)), None),
            ("x".repeat(200_000), None),
        ];
        for (body, count) in &cases {
            let start = body.get(..60).unwrap_or_default();
            let parts = parts(body);
            assert_eq!(parts.as_ref().map(Vec::len), *count, "{start}");
            let listed = |text: &str| -> Vec<Value> {
                let value: Value = serde_json::from_str(text).expect("JSON");
                let list = value.as_object().map_or(value.clone(), |fields| {
                    fields.values().find(|field| field.is_array()).expect("a list").clone()
                });
                list.as_array().expect("a list").clone()
            };
            let Some(parts) = parts else { continue };
            assert!(parts.iter().all(|part| part.len() <= PART_BYTES + 100 || listed(part).len() == 1), "{start}");
            let together: Vec<Value> = parts.iter().flat_map(|part| listed(part)).collect();
            assert_eq!(together, listed(body), "{start}");
        }
        println!("long pages: {} cases", cases.len());
    }

    #[test]
    fn only_catalogues_are_cut() {
        let cases = [
            ("/events?limit=100", true),
            ("/trade-api/v2/markets?cursor=x", true),
            ("/events/KX-1", false),
            ("/books", false),
            ("/markets/A/orderbook", false),
            ("/markets/trades", false),
        ];
        for (url, expected) in cases {
            assert_eq!(is_catalogue(url), expected, "{url}");
        }
        println!("calls: {} cases", cases.len());
    }
}
