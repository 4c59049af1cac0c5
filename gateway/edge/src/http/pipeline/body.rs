//! The body of a request: its size, its deadline, its declared type. It is read completely before the handler runs.

use crate::http::code::Code;
use crate::http::reply::Refusal;
use crate::settings::Http;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use hyper::header::{self, HeaderMap};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

/// Step 3: the declared length.
pub(super) fn size(declared: Option<u64>, bounds: &Http) -> Result<(), Refusal> {
    if declared.is_some_and(|length| length > bounds.body_bytes_max as u64) { Err(too_large(bounds)) } else { Ok(()) }
}

fn too_large(bounds: &Http) -> Refusal {
    let message = format!("The body is larger than {} bytes.", bounds.body_bytes_max);
    Refusal::new(Code::Http413, message).closing()
}

/// Reads the complete body within its bounds of size and time.
pub(super) async fn whole_body<B>(body: B, bounds: &Http) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut reading = pin!(collected(body, bounds));
    // Usually the body arrived with the head and needs no timer.
    let first_poll = std::future::poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await;
    match first_poll {
        Poll::Ready(body) => body,
        // Boxed: otherwise every exchange would have room for this timer.
        Poll::Pending => Box::pin(within(bounds.body_timeout, reading)).await,
    }
}

async fn within(
    deadline: Duration,
    reading: Pin<&mut impl Future<Output = Result<Bytes, Refusal>>>,
) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(deadline, reading).await {
        Ok(body) => body,
        Err(_) => Err(Refusal::broken("The body did not arrive in time.")),
    }
}

async fn collected<B>(mut body: B, bounds: &Http) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(Refusal::broken("The body could not be read.")) };
        let Ok(bytes) = frame.into_data() else { continue };
        if first.len() + more.len() + bytes.len() > bounds.body_bytes_max {
            return Err(too_large(bounds));
        }
        if first.is_empty() {
            first = bytes;
        } else {
            more.extend_from_slice(&bytes);
        }
    }
    if more.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + more.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&more);
    Ok(whole.freeze())
}

/// Checks the declared type: JSON in UTF-8.
pub(super) fn content_type(headers: &HeaderMap, body: &Bytes) -> Result<(), Refusal> {
    let Some(declared) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let sound = declared.to_str().is_ok_and(|text| {
        let mut parts = text.split(';').map(str::trim);
        let json = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
        json && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                let charset = value.trim().trim_matches('"');
                charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8")
            }
            _ => true,
        })
    });
    if sound || (body.is_empty() && declared.is_empty()) { Ok(()) } else { Err(Code::Http415.into()) }
}
