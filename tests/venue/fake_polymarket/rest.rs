//! The stand-in's catalogue and order-book service.

use super::{RestFault, Shared, State};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use tokio::net::TcpListener;

/// Rows of one page of the catalogue.
const PAGE: usize = 100;

pub async fn serve(listener: TcpListener, shared: Shared) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        if shared.lock().expect("sound").gone {
            continue;
        }
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, shared.clone()));
            // A client that disconnects is not an error of the test.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: Request<Incoming>, shared: Shared) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let target = request.uri().to_string();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let (fault, (status, text)) = {
        let mut state = shared.lock().expect("sound");
        if state.gone {
            // The connection breaks.
            return Err(std::io::Error::other("gone"));
        }
        state.calls.push((std::time::Instant::now(), target.clone()));
        (state.fault(&target), state.well(&target, &String::from_utf8_lossy(&body)))
    };
    let RestFault { slow, retry_after, status: wrong, body: instead, .. } = fault.unwrap_or_default();
    tokio::time::sleep(slow).await;
    let mut response = Response::builder().status(if wrong == 0 { status } else { wrong });
    if let Some(seconds) = retry_after {
        response = response.header("retry-after", seconds);
    }
    let text = instead.unwrap_or(if wrong == 0 { text } else { json!({"error": "not now"}).to_string() });
    Ok::<_, Infallible>(response.body(Full::from(text)).expect("a valid answer")).map_err(|never| match never {})
}

/// Values of a parameter that may be repeated.
fn all<'a>(query: &'a str, name: &str) -> Vec<&'a str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(key, _)| *key == name).map(|(_, v)| v).collect()
}

impl State {
    fn fault(&mut self, target: &str) -> Option<RestFault> {
        let fault = self.faults.iter_mut().find(|fault| fault.times > 0 && target.starts_with(fault.path))?;
        fault.times -= 1;
        self.met.insert(fault.path);
        Some(fault.clone())
    }

    /// The answer without a fault.
    fn well(&mut self, target: &str, body: &str) -> (u16, String) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let number = |name: &str| all(query, name).first().and_then(|value| value.parse::<usize>().ok()).unwrap_or(0);
        let one = |name: &str| all(query, name).first().copied().unwrap_or_default().to_owned();
        match path {
            "/events" => {
                let slugs = all(query, "slug");
                let offset = number("offset");
                if offset > 10_000 {
                    return (422, json!({"error": "offset too large"}).to_string());
                }
                let mut events = self.events(&slugs);
                if one("ascending") == "false" {
                    events.reverse();
                }
                (200, json!(events.into_iter().skip(offset).take(PAGE).collect::<Vec<_>>()).to_string())
            }
            "/events/keyset" if self.keyset => {
                // The cursor is the number of earlier rows, in a form that has to be escaped.
                let before = one("after_cursor").replace("%2B", "+").replace("%3D", "=");
                let before: usize = before.trim_matches(['+', '=']).parse().unwrap_or(0);
                let events: Vec<Value> = self.events(&[]).into_iter().skip(before).take(PAGE).collect();
                let next = (events.len() == PAGE).then(|| format!("+{}=", before + PAGE));
                (200, json!({"events": events, "next_cursor": next}).to_string())
            }
            "/markets" => {
                let (asked, closed) = (all(query, "condition_ids"), one("closed") == "true");
                let rows = self.rows.values().filter(|row| {
                    row["closed"].as_bool() == Some(closed)
                        && asked.iter().any(|condition| row["conditionId"].as_str() == Some(condition))
                });
                (200, json!(rows.collect::<Vec<_>>()).to_string())
            }
            "/books" => {
                let asked: Vec<Value> = serde_json::from_str(body).unwrap_or_default();
                assert!(asked.len() <= 500, "more tokens than the venue accepts: {}", asked.len());
                let tokens = asked.iter().filter_map(|row| row["token_id"].as_str());
                (200, json!(tokens.filter_map(|token| self.book_message(token)).collect::<Vec<_>>()).to_string())
            }
            "/book" => match self.book_message(&one("token_id")) {
                Some(book) => (200, book.to_string()),
                None => (404, json!({"error": "No orderbook exists for the requested token id"}).to_string()),
            },
            _ => match path.strip_prefix("/markets/").and_then(|condition| self.clob.get(condition)) {
                Some(row) => (200, row.to_string()),
                None => (404, json!({"error": "not found"}).to_string()),
            },
        }
    }

    /// Open events with their markets, oldest first; of these slugs, if any are given.
    fn events(&self, slugs: &[&str]) -> Vec<Value> {
        let open = self.rows.values().filter(|row| row["closed"].as_bool() != Some(true));
        let named = open.filter(|row| slugs.is_empty() || slugs.iter().any(|slug| row["slug"].as_str() == Some(slug)));
        let event = |row: &Value| {
            let mut event = row["events"][0].clone();
            let mut market = row.clone();
            market.as_object_mut().expect("a row").remove("events");
            event["markets"] = json!([market]);
            event
        };
        named.map(event).collect()
    }
}
