//! Lists of tokens as batch reads take them (gateway/docs/venue-clients.md §1.2, §1.3): a JSON body, or two comma lists in
//! the query.

use crate::api::{prices, tokens};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::Refusal;
use crate::http::route::BodyKind;
use engine::book::BookSide;
use wire::query::Query;
use wire::value::Value;

/// Entries of one batch.
pub const BATCH_MAX: usize = 500;

/// One entry of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchItem {
    pub token: String,
    /// `None`: both.
    pub side: Option<BookSide>,
}

/// How a batch reads the sides of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// They are ignored.
    Ignored,
    /// Each entry of a body names one; a query may leave all of them out.
    Read,
}

/// The entries of a body: a bare array of objects, or `{"items":[…]}`; 1 to 500.
///
/// # Errors
/// `INVALID_BODY`, `INVALID_TOKEN_ID`, and `INVALID_REQUEST` for a missing or unknown side.
pub fn in_body(body: &Value<'_>, sides: Sides) -> Result<Vec<BatchItem>, Refusal> {
    let entry = |item: &Value<'_>| {
        let token = text(item.get("token_id"))?;
        let side = match sides {
            Sides::Ignored => None,
            Sides::Read => Some(prices::side(item.get("side").and_then(|side| match side {
                Value::Text(side) => Some(side.as_ref()),
                _ => None,
            }))?),
        };
        Ok(BatchItem { token, side })
    };
    items(body)?.iter().map(entry).collect()
}

/// The entries of the old body `{"token_ids":["…"]}`; `None` for any other body.
///
/// # Errors
/// As [`in_body`].
pub fn in_old_body(body: &Value<'_>) -> Result<Option<Vec<BatchItem>>, Refusal> {
    let Some(ids) = body.get("token_ids") else { return Ok(None) };
    let Value::Array(ids) = ids else { return Err(no_list()) };
    let entry = |id: &Value<'_>| Ok(BatchItem { token: text(Some(id))?, side: None });
    bounded(ids)?.iter().map(entry).collect::<Result<_, Refusal>>().map(Some)
}

/// The entries of `token_ids` and `sides`; without sides both of each token. `None` when the query names no tokens.
///
/// # Errors
/// As [`in_body`].
pub fn in_query(query: &Query<'_>, sides: Sides) -> Result<Option<Vec<BatchItem>>, Refusal> {
    let Some(ids) = query.get("token_ids") else { return Ok(None) };
    if ids.split(',').count() > BATCH_MAX {
        return Err(too_many());
    }
    let named = query.get("sides").filter(|named| sides == Sides::Read && !named.is_empty());
    let sides: Option<Vec<_>> = named.map(|named| named.split(',').collect());
    if sides.as_ref().is_some_and(|sides| sides.len() != ids.split(',').count()) {
        return Err(prices::invalid_side());
    }
    let entry = |(at, id): (usize, &str)| {
        let token = Some(id).filter(|id| tokens::well_formed(id)).ok_or(Code::InvalidTokenId)?.to_owned();
        let side = sides.as_ref().map(|sides| prices::side(Some(sides[at]))).transpose()?;
        Ok(BatchItem { token, side })
    };
    ids.split(',').enumerate().map(entry).collect::<Result<_, Refusal>>().map(Some)
}

/// The entries of a request without sides: in its body, or, where that may be missing, in its query.
///
/// # Errors
/// As [`in_body`]; `INVALID_TOKEN_ID` when neither has any.
pub fn requested(call: &Call) -> Result<Vec<BatchItem>, Refusal> {
    match call.json()? {
        Some(body) => in_body(&body, Sides::Ignored),
        None if call.route.body == BodyKind::Required => Err(Refusal::new(Code::InvalidBody, "The body is empty.")),
        None => Ok(in_query(&call.query(), Sides::Ignored)?.ok_or(Code::InvalidTokenId)?),
    }
}

/// The items of a batch body: a bare array, or `{"items":[…]}`; 1 to 500.
///
/// # Errors
/// `INVALID_BODY`.
pub fn items<'a, 'v>(body: &'a Value<'v>) -> Result<&'a [Value<'v>], Refusal> {
    match body {
        Value::Array(items) => bounded(items),
        other => match other.get("items") {
            Some(Value::Array(items)) => bounded(items),
            _ => Err(no_list()),
        },
    }
}

fn bounded<'a, 'v>(items: &'a [Value<'v>]) -> Result<&'a [Value<'v>], Refusal> {
    match items.len() {
        0 => Err(no_list()),
        1..=BATCH_MAX => Ok(items),
        _ => Err(too_many()),
    }
}

/// The token id of an entry.
fn text(id: Option<&Value<'_>>) -> Result<String, Refusal> {
    match id {
        Some(Value::Text(token)) if tokens::well_formed(token) => Ok(token.to_string()),
        _ => Err(Code::InvalidTokenId.into()),
    }
}

fn no_list() -> Refusal {
    Refusal::new(Code::InvalidBody, "The body is not a list of token ids.")
}

fn too_many() -> Refusal {
    Refusal::new(Code::InvalidBody, "Payload exceeds the limit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::read;

    type Entries<'a> = Result<&'a [(&'a str, Option<BookSide>)], (Code, &'a str)>;

    fn same(read: Result<Vec<BatchItem>, Refusal>, expected: &Entries<'_>, case: &str) {
        let read = read.map_err(|refusal| (refusal.code(), refusal.message().to_owned()));
        let expected = match expected {
            Ok(entries) => {
                Ok(entries.iter().map(|(token, side)| BatchItem { token: (*token).into(), side: *side }).collect())
            }
            Err((code, message)) => Err((*code, (*message).to_owned())),
        };
        assert_eq!(read, expected, "{case}");
    }

    const NO_LIST: Entries<'_> = Err((Code::InvalidBody, "The body is not a list of token ids."));
    const TOO_MANY: Entries<'_> = Err((Code::InvalidBody, "Payload exceeds the limit"));
    const NO_TOKEN: Entries<'_> = Err((Code::InvalidTokenId, "Invalid token id"));
    const NO_SIDE: Entries<'_> = Err((Code::InvalidRequest, "Invalid side"));
    const BID: Option<BookSide> = Some(BookSide::Bid);
    const ASK: Option<BookSide> = Some(BookSide::Ask);

    #[test]
    fn bodies_are_lists_of_tokens_with_their_sides() {
        let many = |count: usize| format!("[{}]", vec![r#"{"token_id":"1"}"#; count].join(","));
        let (most, more) = (many(500), many(501));
        let (longest, longer) = ("7".repeat(80), "7".repeat(81));
        let (longest, longer) = (format!(r#"[{{"token_id":"{longest}"}}]"#), format!(r#"[{{"token_id":"{longer}"}}]"#));
        let cases: &[(&str, Sides, Entries<'_>)] = &[
            (r#"[{"token_id":"1"},{"token_id":"2","side":"x"}]"#, Sides::Ignored, Ok(&[("1", None), ("2", None)])),
            (r#"{"items":[{"token_id":"1"}]}"#, Sides::Ignored, Ok(&[("1", None)])),
            (
                r#"[{"token_id":"1","side":"buy"},{"token_id":"1","side":"SELL"}]"#,
                Sides::Read,
                Ok(&[("1", BID), ("1", ASK)]),
            ),
            (r#"[{"token_id":"1","side":""}]"#, Sides::Read, NO_SIDE),
            (r#"[{"token_id":"1"}]"#, Sides::Read, NO_SIDE),
            (r#"[{"token_id":"1","side":0}]"#, Sides::Read, NO_SIDE),
            (r#"[{"token_id":"1","side":null}]"#, Sides::Read, NO_SIDE),
            (r#"[{"token_id":1}]"#, Sides::Ignored, NO_TOKEN),
            (r#"[{"token_id":"0x1"}]"#, Sides::Ignored, NO_TOKEN),
            (r#"[{"token_id":""}]"#, Sides::Ignored, NO_TOKEN),
            (r#"[{}]"#, Sides::Ignored, NO_TOKEN),
            (r#"["1"]"#, Sides::Ignored, NO_TOKEN),
            (&longer, Sides::Ignored, NO_TOKEN),
            ("[]", Sides::Ignored, NO_LIST),
            ("{}", Sides::Ignored, NO_LIST),
            (r#"{"items":{}}"#, Sides::Ignored, NO_LIST),
            (r#"{"items":[]}"#, Sides::Ignored, NO_LIST),
            ("7", Sides::Ignored, NO_LIST),
            ("null", Sides::Ignored, NO_LIST),
            (&more, Sides::Ignored, TOO_MANY),
        ];
        for (text, sides, expected) in cases {
            let body = read::json(text.as_bytes()).expect("JSON");
            same(in_body(&body, *sides), expected, text);
        }
        for text in [&most, &longest] {
            assert!(in_body(&read::json(text.as_bytes()).expect("JSON"), Sides::Ignored).is_ok());
        }
        println!("{} cases", cases.len() + 2);
    }

    #[test]
    fn queries_are_comma_lists() {
        let (most, more) = (vec!["1"; 500].join(","), vec!["1"; 501].join(","));
        let (most, more) = (format!("token_ids={most}"), format!("token_ids={more}"));
        let cases: &[(&str, Entries<'_>)] = &[
            ("token_ids=1,2", Ok(&[("1", None), ("2", None)])),
            ("token_ids=1%2C2&sides=", Ok(&[("1", None), ("2", None)])),
            ("token_ids=1,2&sides=BUY,sell", Ok(&[("1", BID), ("2", ASK)])),
            ("token_ids=1,2&sides=BUY", NO_SIDE),
            ("token_ids=1&sides=BUY,SELL", NO_SIDE),
            ("token_ids=1&sides=x", NO_SIDE),
            ("token_ids=", NO_TOKEN),
            ("token_ids=1,", NO_TOKEN),
            ("token_ids=0x1", NO_TOKEN),
            ("token_ids=x&sides=BUY", NO_TOKEN),
            (&more, TOO_MANY),
        ];
        for (text, expected) in cases {
            let read = in_query(&Query::read(text), Sides::Read).map(|read| read.expect("tokens are named"));
            same(read, expected, text);
        }
        assert!(in_query(&Query::read(&most), Sides::Read).is_ok());
        let ignored = in_query(&Query::read("token_ids=1&sides=x,y"), Sides::Ignored);
        same(ignored.map(|read| read.expect("tokens are named")), &Ok(&[("1", None)]), "ignored");
        assert_eq!(in_query(&Query::read("sides=BUY"), Sides::Read).map_err(|refusal| refusal.code()), Ok(None));
        println!("{} cases", cases.len() + 2);
    }

    #[test]
    fn an_older_body_names_tokens_alone() {
        let cases: &[(&str, Entries<'_>)] = &[
            (r#"{"token_ids":["1","2"]}"#, Ok(&[("1", None), ("2", None)])),
            (r#"{"token_ids":[]}"#, NO_LIST),
            (r#"{"token_ids":"1"}"#, NO_LIST),
            (r#"{"token_ids":[1]}"#, NO_TOKEN),
            (r#"{"token_ids":["x"]}"#, NO_TOKEN),
        ];
        for (text, expected) in cases {
            let body = read::json(text.as_bytes()).expect("JSON");
            same(in_old_body(&body).map(|read| read.expect("an old body")), expected, text);
        }
        let other = read::json(b"[]").expect("JSON");
        assert_eq!(in_old_body(&other).map_err(|refusal| refusal.code()), Ok(None));
        println!("{} cases", cases.len() + 1);
    }
}
