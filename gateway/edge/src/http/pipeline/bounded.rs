//! Bounds of a request: a panic or an endless wait ends this request alone, and placements in flight are limited.

use crate::http::call::Caller;
use crate::http::front::Front;
use crate::http::limit::Placement;
use crate::http::reply::{Outcome, Refusal};
use crate::http::route::{RateClass, Route};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// A failure that no check covers.
#[derive(Debug)]
pub(super) enum Failure {
    /// The panic hook has logged the place.
    Panicked,
    /// Every wait of a request has its own bound. This one catches a wait without one.
    TookTooLong,
}

/// Step 7: takes a slot for a placement.
pub(super) fn placement(front: &Front, route: &Route, caller: Option<&Caller>) -> Result<Option<Placement>, Refusal> {
    match (route.rate, caller) {
        (RateClass::Placement, Some(caller)) => front.limits.placement(caller.user).map(Some),
        _ => Ok(None),
    }
}

/// Runs a request to its outcome.
///
/// # Errors
/// It panicked, or took longer than `http.request_timeout_ms`.
pub(super) async fn bounded<F: Future<Output = Outcome>>(
    front: &Front,
    mut request: Pin<&mut F>,
) -> Result<Outcome, Failure> {
    let mut timer = None;
    std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| request.as_mut().poll(context))) {
            Ok(Poll::Ready(outcome)) => return Poll::Ready(Ok(outcome)),
            Ok(Poll::Pending) => {}
            Err(_) => return Poll::Ready(Err(Failure::Panicked)),
        }
        // Most requests end with the first poll and need no timer.
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(front.settings.http.request_timeout)));
        timer.as_mut().poll(context).map(|()| Err(Failure::TookTooLong))
    })
    .await
}
