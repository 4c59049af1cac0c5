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
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Requests of routes that run or wait at the same time.
const REQUESTS_MAX: usize = 64;
/// Tests of a user that run or wait at the same time, of mail and of targets together.
const TESTS_OF_USER_MAX: u32 = 1;
/// Checks of addresses of a user that run or wait at the same time.
const CHECKS_OF_USER_MAX: u32 = 4;
/// The interval of test mails of a user.
const TEST_MAIL_EVERY: Duration = Duration::from_secs(60);
/// Test mails that are remembered. At the bound the oldest is forgotten, and its user may have another one.
const TESTS_KEPT_MAX: usize = 10_000;

/// What a route asks the dispatcher to do.
pub enum Request {
    Check { user: UserId, channel: Channel, url: String, reply: Reply<Result<String, NoTarget>> },
    TestMail { user: UserId, to: String, now: Timestamp, reply: Reply<Result<SentMail, NotSent>> },
    Test { user: UserId, target: AlertTarget, now: Timestamp, reply: Reply<Result<(), NotSent>> },
}

/// Answers a request once. Its place is free when the route has the answer: a client that asks again after an answer
/// finds it.
pub struct Reply<T> {
    place: Place,
    to: oneshot::Sender<T>,
}

impl<T> Reply<T> {
    /// A route that has left gets no answer.
    pub fn send(self, answer: T) {
        drop(self.place);
        let _ = self.to.send(answer);
    }
}

/// A place among all requests, and among those of its user; free when this is dropped.
struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_user: Held,
}

/// Requests of each user that run or wait: only those that have some.
#[derive(Debug, Default)]
struct PerUser(Mutex<AHashMap<UserId, u32>>);

/// One of the requests of a user.
struct Held {
    counts: Arc<PerUser>,
    user: UserId,
}

impl PerUser {
    /// `None`: the user has `max` already.
    fn hold(self: &Arc<PerUser>, user: UserId, max: u32) -> Option<Held> {
        let mut counts = self.0.lock();
        let count = counts.get(&user).copied().unwrap_or(0);
        (count < max).then(|| {
            counts.insert(user, count + 1);
            Held { counts: Arc::clone(self), user }
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        match counts.get_mut(&self.user) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = counts.remove(&self.user),
        }
    }
}

/// The last test mail of each user, for a minute.
#[derive(Debug, Default)]
struct Minutes {
    last: AHashMap<UserId, Instant>,
    /// Every one, the oldest first; also those that were given back.
    in_order: VecDeque<(Instant, UserId)>,
}

impl Minutes {
    /// Takes the minute of a user; the seconds until the next one if it is taken.
    fn take(&mut self, user: UserId, at: Instant) -> Result<(), u32> {
        let left = |last: Instant| TEST_MAIL_EVERY.saturating_sub(at.saturating_duration_since(last));
        let waits = self.last.get(&user).map(|last| left(*last)).filter(|left| !left.is_zero());
        if let Some(left) = waits {
            return Err(u32::try_from(left.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX).max(1));
        }
        while let Some((last, of)) = self.in_order.front().copied()
            && (left(last).is_zero() || self.in_order.len() >= TESTS_KEPT_MAX)
        {
            self.in_order.pop_front();
            self.give_back(of, last);
        }
        self.in_order.push_back((at, user));
        self.last.insert(user, at);
        Ok(())
    }

    /// The test of that moment was not sent.
    fn give_back(&mut self, user: UserId, at: Instant) {
        if self.last.get(&user) == Some(&at) {
            self.last.remove(&user);
        }
    }
}

/// The routes' side.
pub struct Sender {
    has_mailer: bool,
    requests: mpsc::UnboundedSender<Request>,
    /// Bounds what is in the channel and what runs.
    places: Arc<Semaphore>,
    tests: Arc<PerUser>,
    checks: Arc<PerUser>,
    owing: Owing,
    deliveries: Arc<Deliveries>,
    minutes: Arc<Mutex<Minutes>>,
}

impl Sender {
    /// The port, and what the dispatcher receives of it.
    pub fn new(
        has_mailer: bool,
        owing: Owing,
        deliveries: Arc<Deliveries>,
    ) -> (Sender, mpsc::UnboundedReceiver<Request>) {
        let (requests, received) = mpsc::unbounded_channel();
        let sender = Sender {
            has_mailer,
            requests,
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
            tests: Arc::default(),
            checks: Arc::default(),
            owing,
            deliveries,
            minutes: Arc::default(),
        };
        (sender, received)
    }

    /// Hands over a request; `busy` without a place among those of the user or among all, or if nothing receives it.
    fn ask<T: Send + 'static, E: Send + 'static>(
        &self,
        of_user: Option<Held>,
        busy: E,
        make: impl FnOnce(Reply<Result<T, E>>) -> Request,
    ) -> Waiting<Result<T, E>> {
        let place = of_user.zip(self.places.clone().try_acquire_owned().ok());
        let Some((of_user, of_all)) = place else {
            return Box::pin(std::future::ready(Err(busy)));
        };
        let (to, answered) = oneshot::channel();
        let place = Place { _of_all: of_all, _of_user: of_user };
        // Without a receiver the reply is dropped with the request.
        drop(self.requests.send(make(Reply { place, to })));
        self.owing.wake();
        Box::pin(async move { answered.await.unwrap_or(Err(busy)) })
    }

    fn test_of(&self, user: UserId) -> Option<Held> {
        self.tests.hold(user, TESTS_OF_USER_MAX)
    }
}

impl Integrations for Sender {
    fn has_mailer(&self) -> bool {
        self.has_mailer
    }

    fn test_mail(&self, user: UserId, to: &str, now: Timestamp) -> Waiting<Result<SentMail, NotSent>> {
        let at = Instant::now();
        if let Err(after) = self.minutes.lock().take(user, at) {
            return Box::pin(std::future::ready(Err(NotSent::TooSoon(after))));
        }
        let to = to.to_owned();
        let asked = self.ask(self.test_of(user), NotSent::Busy, |reply| Request::TestMail { user, to, now, reply });
        let minutes = Arc::clone(&self.minutes);
        Box::pin(async move {
            let sent = asked.await;
            if sent == Err(NotSent::Busy) {
                minutes.lock().give_back(user, at);
            }
            sent
        })
    }

    fn check(&self, user: UserId, channel: Channel, url: &str) -> Waiting<Result<String, NoTarget>> {
        let url = url.to_owned();
        let place = self.checks.hold(user, CHECKS_OF_USER_MAX);
        self.ask(place, NoTarget::Busy, |reply| Request::Check { user, channel, url, reply })
    }

    fn test(&self, user: UserId, target: &AlertTarget, now: Timestamp) -> Waiting<Result<(), NotSent>> {
        let target = target.clone();
        self.ask(self.test_of(user), NotSent::Busy, |reply| Request::Test { user, target, now, reply })
    }

    fn deliveries(&self, user: UserId, target: u32) -> Vec<Delivery> {
        self.deliveries.of(user, target)
    }

    fn forget(&self, user: UserId, target: u32) {
        self.deliveries.forget(user, target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Wake, Waker};

    const URL: &str = "https://hooks.example.net/";

    fn sender() -> (Sender, mpsc::UnboundedReceiver<Request>) {
        Sender::new(true, Owing::default(), Arc::default())
    }

    #[test]
    fn a_user_has_one_test_mail_a_minute() {
        let mut minutes = Minutes::default();
        let begun = Instant::now();
        let at = |secs| begun + Duration::from_secs(secs);
        let rows =
            [(1, 0, Ok(())), (1, 0, Err(60)), (1, 30, Err(30)), (2, 30, Ok(())), (1, 60, Ok(())), (1, 61, Err(59))];
        for (user, secs, expected) in rows {
            assert_eq!(minutes.take(UserId(user), at(secs)), expected, "user {user} at {secs} s");
        }
        // Only the test of that moment is given back.
        minutes.give_back(UserId(1), at(0));
        assert_eq!(minutes.take(UserId(1), at(62)), Err(58));
        minutes.give_back(UserId(1), at(60));
        assert_eq!(minutes.take(UserId(1), at(62)), Ok(()));
        println!("test mails: {} cases", rows.len() + 2);
    }

    #[test]
    fn test_mails_that_are_remembered_have_a_bound() {
        let mut minutes = Minutes::default();
        let begun = Instant::now();
        for user in 0..TESTS_KEPT_MAX as u64 {
            assert_eq!(minutes.take(UserId(user), begun), Ok(()));
        }
        // One that has never tested is not refused; the oldest is forgotten.
        assert_eq!(minutes.take(UserId(u64::MAX), begun), Ok(()));
        assert_eq!((minutes.last.len(), minutes.in_order.len()), (TESTS_KEPT_MAX, TESTS_KEPT_MAX));
        assert_eq!((minutes.take(UserId(1), begun), minutes.take(UserId(0), begun)), (Err(60), Ok(())));
        // After a minute nothing is remembered.
        assert_eq!(minutes.take(UserId(u64::MAX), begun + TEST_MAIL_EVERY), Ok(()));
        assert_eq!((minutes.last.len(), minutes.in_order.len()), (1, 1));
    }

    #[test]
    fn a_test_mail_that_finds_no_place_leaves_the_minute() {
        let runtime = host::runtime::runtime().expect("a runtime");
        let (sender, mut received) = sender();
        let mail = |user| sender.test_mail(UserId(user), "trader@example.net", Timestamp(1));
        let full: Vec<_> =
            (0..REQUESTS_MAX as u64).map(|user| sender.check(UserId(user), Channel::Chat, URL)).collect();
        for _ in 0..2 {
            assert_eq!(runtime.block_on(mail(1)), Err(NotSent::Busy));
        }
        while let Ok(request) = received.try_recv() {
            drop(request);
        }
        drop(full);
        // One that is handed over and not answered was not sent either.
        for _ in 0..2 {
            let waits = mail(1);
            drop(received.try_recv().expect("a test"));
            assert_eq!(runtime.block_on(waits), Err(NotSent::Busy));
        }
        // One that failed has taken it.
        let waits = mail(1);
        let Request::TestMail { reply, .. } = received.try_recv().expect("a test") else { panic!("a test mail") };
        reply.send(Err(NotSent::Failed("no".to_owned())));
        assert_eq!(runtime.block_on(waits), Err(NotSent::Failed("no".to_owned())));
        assert!(matches!(runtime.block_on(mail(1)), Err(NotSent::TooSoon(1..=60))));
    }

    #[test]
    fn requests_have_a_bound_and_end_with_their_receiver() {
        let runtime = host::runtime::runtime().expect("a runtime");
        let (sender, mut received) = sender();
        let check = |user| sender.check(UserId(user), Channel::Webhook, URL);
        let mut waiting: Vec<_> = (0..REQUESTS_MAX as u64).map(check).collect();
        assert_eq!(runtime.block_on(check(1_000)), Err(NoTarget::Busy));
        // One is answered, so there is a place.
        let Request::Check { reply, .. } = received.try_recv().expect("the first") else { panic!("a check") };
        reply.send(Ok(URL.to_owned()));
        assert!(runtime.block_on(waiting.remove(0)).is_ok());
        waiting.push(check(1_000));
        drop(received);
        for waits in waiting {
            assert_eq!(runtime.block_on(waits), Err(NoTarget::Busy));
        }
        assert_eq!(runtime.block_on(check(1)), Err(NoTarget::Busy));
    }

    /// What is free when the route is woken: a client that asks again then is not refused.
    #[test]
    fn a_place_is_free_before_its_answer_arrives() {
        struct Woken(Arc<Semaphore>, Arc<PerUser>, Mutex<Vec<(usize, usize)>>);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.2.lock().push((self.0.available_permits(), self.1.0.lock().len()));
            }
        }
        let (sender, mut received) = sender();
        let target = crate::testing::target(Channel::Webhook, URL);
        let mut waits = sender.test(UserId(1), &target, Timestamp(1));
        let woken = Arc::new(Woken(Arc::clone(&sender.places), Arc::clone(&sender.tests), Mutex::default()));
        let waker = Waker::from(Arc::clone(&woken));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let Request::Test { reply, .. } = received.try_recv().expect("a test") else { panic!("a test") };
        reply.send(Ok(()));
        assert_eq!(*woken.2.lock(), [(REQUESTS_MAX, 0)]);
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }

    /// Requests of one user leave the places of the others.
    #[test]
    fn requests_of_a_user_have_a_bound() {
        let runtime = host::runtime::runtime().expect("a runtime");
        let (sender, mut received) = sender();
        let check = |user| sender.check(UserId(user), Channel::Webhook, URL);
        let checks: Vec<_> = (0..CHECKS_OF_USER_MAX).map(|_| check(1)).collect();
        assert_eq!(runtime.block_on(check(1)), Err(NoTarget::Busy));
        let other = check(2);
        // A test of a target and one of mail share their place.
        let mail = |user| sender.test_mail(UserId(user), "trader@example.net", Timestamp(1));
        let (first, of_other) = (mail(1), mail(2));
        let target = crate::testing::target(Channel::Webhook, URL);
        let test = || sender.test(UserId(1), &target, Timestamp(1));
        assert_eq!(runtime.block_on(test()), Err(NotSent::Busy));
        assert_eq!(sender.tests.0.lock().len(), 2);
        let mut requests = Vec::new();
        while let Ok(one) = received.try_recv() {
            requests.push(one);
        }
        assert_eq!(requests.len(), CHECKS_OF_USER_MAX as usize + 3);
        drop((requests, checks, other, first, of_other));
        assert_eq!((sender.tests.0.lock().len(), sender.checks.0.lock().len()), (0, 0));
        assert_eq!(sender.places.available_permits(), REQUESTS_MAX);
        let waits = test();
        assert!(received.try_recv().is_ok());
        assert_eq!(runtime.block_on(waits), Err(NotSent::Busy), "its request was dropped");
    }
}
