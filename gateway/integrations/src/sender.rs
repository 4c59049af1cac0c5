//! The port of the routes: tests, checks of addresses, and the last deliveries. Requests are handed to the dispatcher's
//! thread, so that no thread of the core opens a connection.

use crate::journal::Deliveries;
use crate::owing::Owing;
use ahash::AHashMap;
use edge::api::integrations::port::{Delivery, Integrations, NoTarget, NotSent, SentMail, Waiting};
use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::AlertTarget;
use engine::user::alerts::Channel;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Requests of routes that run or wait at the same time.
const REQUESTS_MAX: usize = 64;
/// The interval of test mails of a user.
const TEST_MAIL_EVERY: Duration = Duration::from_secs(60);
/// Users whose last test mail is remembered. At the bound further users have to wait.
const TESTERS_MAX: usize = 10_000;

/// What a route asks the dispatcher to do.
pub enum Request {
    Check { channel: Channel, url: String, reply: oneshot::Sender<Result<String, NoTarget>> },
    TestMail { user: UserId, to: String, now: Timestamp, reply: oneshot::Sender<Result<SentMail, NotSent>> },
    Test { user: UserId, target: AlertTarget, now: Timestamp, reply: oneshot::Sender<Result<(), NotSent>> },
}

/// A request, and its place among those that run.
pub struct Placed {
    pub request: Request,
    pub place: OwnedSemaphorePermit,
}

/// The routes' side.
pub struct Sender {
    has_mailer: bool,
    requests: mpsc::UnboundedSender<Placed>,
    /// Bounds what is in the channel and what runs.
    places: Arc<Semaphore>,
    owing: Owing,
    deliveries: Arc<Deliveries>,
    tested_at: Mutex<AHashMap<UserId, Instant>>,
}

impl Sender {
    /// The port, and what the dispatcher receives of it.
    pub fn new(
        has_mailer: bool,
        owing: Owing,
        deliveries: Arc<Deliveries>,
    ) -> (Sender, mpsc::UnboundedReceiver<Placed>) {
        let (requests, received) = mpsc::unbounded_channel();
        let places = Arc::new(Semaphore::new(REQUESTS_MAX));
        let sender = Sender { has_mailer, requests, places, owing, deliveries, tested_at: Mutex::default() };
        (sender, received)
    }

    /// Hands over a request; `busy` if there is no place, or nothing receives it.
    fn ask<T: Send + 'static, E: Send + 'static>(
        &self,
        busy: E,
        make: impl FnOnce(oneshot::Sender<Result<T, E>>) -> Request,
    ) -> Waiting<Result<T, E>> {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            return Box::pin(std::future::ready(Err(busy)));
        };
        let (reply, answered) = oneshot::channel();
        // Without a receiver the reply is dropped with the request.
        drop(self.requests.send(Placed { request: make(reply), place }));
        self.owing.wake();
        Box::pin(async move { answered.await.unwrap_or(Err(busy)) })
    }

    /// Takes the minute of a user; the seconds until the next one if it is taken.
    fn take_minute(&self, user: UserId, at: Instant) -> Result<(), u32> {
        let mut tested_at = self.tested_at.lock();
        let left = |last: &Instant| TEST_MAIL_EVERY.saturating_sub(at.saturating_duration_since(*last));
        let waits = tested_at.get(&user).map(left).filter(|left| !left.is_zero());
        if let Some(left) = waits {
            return Err(u32::try_from(left.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX).max(1));
        }
        if tested_at.len() >= TESTERS_MAX {
            tested_at.retain(|_, last| !left(last).is_zero());
        }
        if tested_at.len() >= TESTERS_MAX {
            return Err(TEST_MAIL_EVERY.as_secs() as u32);
        }
        tested_at.insert(user, at);
        Ok(())
    }
}

impl Integrations for Sender {
    fn has_mailer(&self) -> bool {
        self.has_mailer
    }

    fn test_mail(&self, user: UserId, to: &str, now: Timestamp) -> Waiting<Result<SentMail, NotSent>> {
        // A user that finds no place has its minute still.
        if self.places.available_permits() == 0 {
            return Box::pin(std::future::ready(Err(NotSent::Busy)));
        }
        if let Err(after) = self.take_minute(user, Instant::now()) {
            return Box::pin(std::future::ready(Err(NotSent::TooSoon(after))));
        }
        let to = to.to_owned();
        self.ask(NotSent::Busy, |reply| Request::TestMail { user, to, now, reply })
    }

    fn check(&self, channel: Channel, url: &str) -> Waiting<Result<String, NoTarget>> {
        let url = url.to_owned();
        self.ask(NoTarget::Busy, |reply| Request::Check { channel, url, reply })
    }

    fn test(&self, user: UserId, target: &AlertTarget, now: Timestamp) -> Waiting<Result<(), NotSent>> {
        let target = target.clone();
        self.ask(NotSent::Busy, |reply| Request::Test { user, target, now, reply })
    }

    fn deliveries(&self, user: UserId, target: u32) -> Vec<Delivery> {
        self.deliveries.of(user, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender() -> (Sender, mpsc::UnboundedReceiver<Placed>) {
        Sender::new(true, Owing::default(), Arc::default())
    }

    #[test]
    fn a_user_has_one_test_mail_a_minute() {
        let (sender, _received) = sender();
        let begun = Instant::now();
        let at = |secs| begun + Duration::from_secs(secs);
        let rows =
            [(1, 0, Ok(())), (1, 0, Err(60)), (1, 30, Err(30)), (2, 30, Ok(())), (1, 60, Ok(())), (1, 61, Err(59))];
        for (user, secs, expected) in rows {
            assert_eq!(sender.take_minute(UserId(user), at(secs)), expected, "user {user} at {secs} s");
        }
        println!("test mails: {} cases", rows.len());
    }

    #[test]
    fn users_that_are_remembered_have_a_bound() {
        let (sender, _received) = sender();
        let begun = Instant::now();
        for user in 0..TESTERS_MAX as u64 {
            assert_eq!(sender.take_minute(UserId(user), begun), Ok(()));
        }
        assert_eq!(sender.take_minute(UserId(u64::MAX), begun), Err(60));
        assert_eq!(sender.take_minute(UserId(u64::MAX), begun + TEST_MAIL_EVERY), Ok(()));
        assert_eq!(sender.tested_at.lock().len(), 1);
    }

    #[test]
    fn requests_have_a_bound_and_end_with_their_receiver() {
        let runtime = host::runtime::runtime().expect("a runtime");
        let (sender, mut received) = sender();
        let mut waiting: Vec<_> =
            (0..REQUESTS_MAX).map(|_| sender.check(Channel::Webhook, "https://hooks.example.net/")).collect();
        let over = sender.check(Channel::Webhook, "https://hooks.example.net/");
        assert_eq!(runtime.block_on(over), Err(NoTarget::Busy));
        // One is answered, so there is a place.
        let Placed { request: Request::Check { reply, .. }, place } = received.try_recv().expect("the first") else {
            panic!("a check")
        };
        reply.send(Ok("https://hooks.example.net/".to_owned())).expect("it waits");
        drop(place);
        assert!(runtime.block_on(waiting.remove(0)).is_ok());
        waiting.push(sender.check(Channel::Webhook, "https://hooks.example.net/"));
        drop(received);
        for waits in waiting {
            assert_eq!(runtime.block_on(waits), Err(NoTarget::Busy));
        }
        assert_eq!(runtime.block_on(sender.check(Channel::Chat, "https://discord.com/")), Err(NoTarget::Busy));
    }
}
