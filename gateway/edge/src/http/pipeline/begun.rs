//! A request at work, between its checks and its answer: nothing that goes wrong in it ends more than itself.

use crate::app::App;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::limit::{InFlight, Placement};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{RateClass, Work};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::Sleep;

/// How a request can fail that no check foresees.
#[derive(Debug)]
pub(super) enum Failure {
    /// The panic hook has said where.
    Panicked,
    /// Every wait of a request has its own bound; this one is for the wait that was forgotten.
    TookTooLong,
}

/// Runs what a request begins with, and all of it where its route answers at once. A panic in it ends this request and
/// nothing more.
pub(super) fn caught(operation: &str, begin: impl FnOnce() -> Result<Begun, Refusal>) -> Result<Begun, Refusal> {
    catch_unwind(AssertUnwindSafe(begin)).unwrap_or_else(|_| {
        tracing::error!(operation, failure = ?Failure::Panicked, "a request was given up");
        Err(Refusal::from(Code::InternalError).closing())
    })
}

/// A request that was let in, with its body: its handler at work, or its outcome.
pub(super) struct Begun {
    /// Of its route, for the log.
    operation: &'static str,
    /// `None` behind an outcome that was there at once.
    work: Option<Work>,
    in_flight: Option<InFlight>,
    _placement: Option<Placement>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Begun {
    /// Step 11; all further ones too where the route answers at once.
    pub(super) fn new(call: Call, in_flight: Option<InFlight>) -> Result<Begun, Refusal> {
        let _placement = placement(&call)?;
        let operation = call.route.name;
        Ok(Begun { operation, work: Some(call.route.way.begin(call)), in_flight, _placement, timer: None })
    }

    /// Steps 12 to 18, unless they are done. A panic in them ends this request and nothing more.
    pub(super) fn poll(&mut self, app: &App, context: &mut Context<'_>) -> Poll<Outcome> {
        let polled = match self.work.take().expect("it has no outcome yet") {
            Work::Done(outcome) => Ok(Poll::Ready(outcome)),
            Work::Runs(mut running) => {
                let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(context)));
                self.work = Some(Work::Runs(running));
                polled
            }
        };
        let failure = match polled {
            Ok(Poll::Ready(mut outcome)) => {
                if let Ok(Reply { pages: Some(pages), .. }) = &mut outcome {
                    pages.hold(self.in_flight.take());
                }
                return Poll::Ready(outcome);
            }
            Ok(Poll::Pending) => {
                let timeout = app.config.http.request_timeout;
                let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
                ready!(timer.as_mut().poll(context));
                Failure::TookTooLong
            }
            Err(_) => Failure::Panicked,
        };
        tracing::error!(operation = self.operation, ?failure, "a request was given up");
        Poll::Ready(Err(Refusal::from(Code::InternalError).closing()))
    }
}

/// Step 11: room for a placement.
pub(super) fn placement(call: &Call) -> Result<Option<Placement>, Refusal> {
    match (call.route.rate, &call.caller) {
        (RateClass::Placement, Some(caller)) => call.app().front.limits.placement(caller.user).map(Some),
        _ => Ok(None),
    }
}

/// Runs a request. A panic in it ends this request and nothing more; whoever called knows what it was for.
pub(super) async fn bounded<F: Future<Output = Outcome>>(
    app: &App,
    mut request: Pin<&mut F>,
) -> Result<Outcome, Failure> {
    let timeout = app.config.http.request_timeout;
    let mut timer = None;
    std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| request.as_mut().poll(context))) {
            Ok(Poll::Ready(output)) => return Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => {}
            Err(_) => return Poll::Ready(Err(Failure::Panicked)),
        }
        // Most requests are answered at once and never come here.
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        timer.as_mut().poll(context).map(|()| Err(Failure::TookTooLong))
    })
    .await
}
