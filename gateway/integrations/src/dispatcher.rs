//! The job that delivers (gateway/docs/integrations.md §5). It sleeps until a user is owed something, a route asks for
//! something, or a pause ends; it asks shards only about users that were reported to it.
//!
//! Each target that is owed something has one worker, which delivers one alert after the other: so one target delays no
//! other, and has one delivery in flight; those of one user have few at the same time. A worker knows nothing that its
//! shard does not, except for the attempts of the present alert: after a restart an owed alert is tried immediately.

use crate::figures::{Figures, Way};
use crate::journal::Deliveries;
use crate::mailer::Mailer;
use crate::owing::Owing;
use crate::post::{Failed, Poster};
use crate::sender::Request;
use crate::settings::{ATTEMPTS_MAX, Settings};
use crate::shards::Shards;
use crate::target::{LookUp, Rules};
use ahash::AHashMap;
use edge::api::integrations::message::{Message, market_of};
use edge::api::integrations::port::{Delivery, DeliveryOutcome, NoTarget, NotSent, SentMail};
use edge::ended_rows::EndedRows;
use edge::engine_client::Reply;
use edge::http::mailbox::is_mailbox;
use engine::command::{AlertOutcome, Answer, Command, Envelope, Query};
use engine::id::UserId;
use engine::market::catalog::Catalog;
use engine::ring::Ring;
use engine::user::alerts::{Channel, FAILURES_MAX};
use engine::user::{AlertTarget, Users};
use engine::view::{AlertsView, OwedAlert};
use futures_util::FutureExt as _;
use host::clock::Clock;
use host::job::{JobWaker, Next, Work};
use host::thread::Stop;
use parking_lot::Mutex;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

/// Longest sleep of the job.
pub const SLEEP_MAX: Duration = Duration::from_secs(3_600);
/// Deliveries to chats and webhooks in flight. Tests of routes have places of their own.
const IN_FLIGHT_MAX: usize = 64;
/// Deliveries of one user to chats and webhooks in flight: its targets that stall leave places for other users.
const IN_FLIGHT_OF_USER_MAX: usize = 4;
/// Mails in flight: a mail server that stalls delays no webhook.
const MAILS_IN_FLIGHT_MAX: usize = 8;
/// Users that are looked at, at the same time; the others wait in their queue, without a task.
const LOOKED_AT_MAX: usize = 256;
/// How long a stop waits for deliveries in flight; what is not finished is delivered again after the next start.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// What a dispatcher is made of.
pub struct Parts {
    pub settings: Settings,
    pub owing: Owing,
    pub requests: mpsc::UnboundedReceiver<Request>,
    pub deliveries: Arc<Deliveries>,
    pub figures: Arc<Figures>,
    /// Of each shard.
    pub inboxes: Vec<Arc<Ring<Envelope<Reply>>>>,
    /// Orders and positions that have left memory.
    pub ended: Arc<dyn EndedRows>,
    pub clock: Clock,
    pub catalog: Arc<Catalog>,
    /// True as soon as the markets of the log are in the catalogue; an alert about a market waits for it. It may end
    /// without, if the start is given up.
    pub is_listed: watch::Receiver<bool>,
    pub mailer: Option<Mailer>,
    pub look_up: LookUp,
    /// Users with alerts at the start.
    pub known: Vec<Known>,
    /// Whether what became of an attempt can be kept: if not, nothing is delivered but tests.
    pub delivers: bool,
}

/// A user with alerts at the start of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub user: UserId,
    pub owes: bool,
    /// Alerts dropped so far.
    pub dropped: u64,
}

impl Known {
    /// Those of these users.
    pub fn of<'a>(users: impl IntoIterator<Item = &'a Users>) -> Vec<Known> {
        let known = |user: &engine::user::User| {
            let alerts = user.alerts()?;
            Some(Known { user: user.id, owes: alerts.owed().next().is_some(), dropped: alerts.dropped() })
        };
        users.into_iter().flat_map(Users::iter).filter_map(known).collect()
    }
}

/// The job.
pub struct Dispatcher {
    /// Made by the first turn, on the thread of the job.
    runtime: Option<Runtime>,
    state: State,
}

struct State {
    shared: Arc<Shared>,
    requests: mpsc::UnboundedReceiver<Request>,
    tasks: JoinSet<Done>,
    looks: JoinSet<Done>,
    workers: Workers,
    /// Places of workers whose reports were refused: their targets wait for the next start.
    refused: Vec<Place>,
    /// Alerts that each user is owed, of those that are owed some.
    owed: AHashMap<UserId, usize>,
    /// The sum of these.
    all_owed: usize,
    /// Dropped alerts that were counted.
    dropped: AHashMap<UserId, u64>,
    delivers: bool,
    /// Ends the pauses of workers.
    stopping: watch::Sender<bool>,
}

/// The workers of all users: one for each target that is owed something.
#[derive(Clone, Default)]
struct Workers(Arc<Mutex<AHashMap<UserId, WorkersOfUser>>>);

struct WorkersOfUser {
    /// Targets that have one, and what wakes it; mail is `None`.
    targets: AHashMap<Option<u32>, Arc<Notify>>,
    /// Bounds the deliveries to chats and webhooks.
    in_flight: Arc<Semaphore>,
}

impl Default for WorkersOfUser {
    fn default() -> WorkersOfUser {
        WorkersOfUser { targets: AHashMap::new(), in_flight: Arc::new(Semaphore::new(IN_FLIGHT_OF_USER_MAX)) }
    }
}

impl Workers {
    /// The place of a new worker; `None` if the target has one. That one is woken if the target has no failures: it may
    /// have been switched off and on.
    fn begin(&self, user: UserId, target: Option<u32>, failures: Option<u32>) -> Option<Place> {
        let mut all = self.0.lock();
        let own = all.entry(user).or_default();
        if let Some(woken) = own.targets.get(&target) {
            if failures == Some(0) {
                woken.notify_one();
            }
            return None;
        }
        let woken = Arc::<Notify>::default();
        own.targets.insert(target, woken.clone());
        Some(Place { workers: self.clone(), user, target, woken, in_flight: own.in_flight.clone() })
    }
}

/// The place of a worker. It is free when this is dropped, also by a panic of the worker.
struct Place {
    workers: Workers,
    user: UserId,
    target: Option<u32>,
    woken: Arc<Notify>,
    in_flight: Arc<Semaphore>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.workers.0.lock();
        if let Some(own) = all.get_mut(&self.user) {
            own.targets.remove(&self.target);
            if own.targets.is_empty() {
                all.remove(&self.user);
            }
        }
    }
}

/// What the tasks use.
struct Shared {
    settings: Settings,
    owing: Owing,
    deliveries: Arc<Deliveries>,
    figures: Arc<Figures>,
    shards: Shards,
    catalog: Arc<Catalog>,
    rules: Rules,
    poster: Poster,
    mailer: Option<Mailer>,
    in_flight: Semaphore,
    mails_in_flight: Semaphore,
    is_listed: watch::Receiver<bool>,
    stopping: watch::Receiver<bool>,
}

/// A task that has ended.
enum Done {
    /// A request of a route.
    Request,
    /// A user was looked at.
    Looked(UserId, Box<AlertsView>),
    /// The user has no alerts.
    Nothing,
    /// A worker of that user.
    Worker(UserId),
    /// A worker whose report was refused.
    Refused(Place),
}

impl Dispatcher {
    pub fn new(parts: Parts) -> Dispatcher {
        let rules = Rules::new(&parts.settings, parts.look_up);
        let poster = Poster::new(&parts.settings, rules.clone());
        let (stopping, is_stopping) = watch::channel(false);
        for known in parts.known.iter().filter(|known| known.owes) {
            parts.owing.add(known.user);
        }
        let shared = Shared {
            settings: parts.settings,
            owing: parts.owing,
            deliveries: parts.deliveries,
            figures: parts.figures,
            shards: Shards::new(parts.inboxes, parts.clock, parts.ended),
            catalog: parts.catalog,
            rules,
            poster,
            mailer: parts.mailer,
            in_flight: Semaphore::new(IN_FLIGHT_MAX),
            mails_in_flight: Semaphore::new(MAILS_IN_FLIGHT_MAX),
            is_listed: parts.is_listed,
            stopping: is_stopping,
        };
        let state = State {
            shared: Arc::new(shared),
            requests: parts.requests,
            tasks: JoinSet::new(),
            looks: JoinSet::new(),
            workers: Workers::default(),
            refused: Vec::new(),
            owed: AHashMap::new(),
            all_owed: 0,
            dropped: parts.known.iter().map(|known| (known.user, known.dropped)).collect(),
            delivers: parts.delivers,
            stopping,
        };
        Dispatcher { runtime: None, state }
    }
}

impl Work for Dispatcher {
    type Error = io::Error;

    const FAILED: &'static str = "alerts cannot be delivered";

    fn take_turn(&mut self, stop: &Stop) -> io::Result<Next> {
        let runtime = match &mut self.runtime {
            Some(runtime) => runtime,
            none => none.insert(host::runtime::runtime()?),
        };
        runtime.block_on(self.state.run(stop));
        Ok(Next::Sleep)
    }

    fn end(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.block_on(self.state.end());
            // Look-ups of names may still run; nothing waits for them.
            runtime.shutdown_background();
        }
    }

    fn waker(&self) -> Option<&JobWaker> {
        Some(self.state.shared.owing.waker())
    }
}

impl State {
    /// Works until nothing is left to do, or the server stops.
    async fn run(&mut self, stop: &Stop) {
        let shared = self.shared.clone();
        loop {
            if stop.is_set() {
                return;
            }
            while let Ok(request) = self.requests.try_recv() {
                self.tasks.spawn(answered(shared.clone(), request));
            }
            let room = if self.delivers { LOOKED_AT_MAX - self.looks.len() } else { usize::MAX };
            for user in shared.owing.take(room).into_iter().filter(|_| self.delivers) {
                self.looks.spawn(looked_at(shared.clone(), user));
            }
            if self.tasks.is_empty() && self.looks.is_empty() {
                return;
            }
            tokio::select! {
                Some(done) = self.tasks.join_next() => self.note(done),
                Some(done) = self.looks.join_next() => self.note(done),
                () = shared.owing.woken() => {}
                () = stop.wait() => return,
            }
        }
    }

    fn note(&mut self, done: Result<Done, tokio::task::JoinError>) {
        match done {
            Ok(Done::Looked(user, alerts)) => self.begin_workers(user, &alerts),
            // Something may have come after its last question.
            Ok(Done::Worker(user)) => self.shared.owing.add(user),
            Ok(Done::Request | Done::Nothing) => {}
            Ok(Done::Refused(place)) => {
                tracing::error!("what became of a delivery was refused; its target waits");
                self.refused.push(place);
            }
            // A panic of an attempt has ended only the attempt. A route that waits gets no answer from its request. A
            // worker begins again with the next alert of its user: immediately it would panic again.
            Err(error) => tracing::error!(%error, "a request of a route, or a question to a shard, has panicked"),
        }
    }

    /// A worker for each target that is owed something and has none.
    fn begin_workers(&mut self, user: UserId, alerts: &AlertsView) {
        let targets = alerts.targets.iter().map(|view| (Some(view.target.id), Some(view.target.failures), view.owed));
        let owed = targets.chain([(None, None, alerts.owed_by_mail)]).filter(|(.., count)| *count > 0);
        let owed: Vec<_> = owed.collect();
        let count: usize = owed.iter().map(|(.., count)| count).sum();
        let before = match count {
            0 => self.owed.remove(&user),
            _ => self.owed.insert(user, count),
        };
        self.all_owed = self.all_owed + count - before.unwrap_or(0);
        self.shared.figures.set_owed(self.all_owed as u64);
        let counted = self.dropped.entry(user).or_insert(0);
        self.shared.figures.note_dropped(alerts.dropped.saturating_sub(*counted));
        *counted = alerts.dropped;
        for (target, failures, _) in owed {
            if let Some(place) = self.workers.begin(user, target, failures) {
                self.tasks.spawn(deliver(self.shared.clone(), place));
            }
        }
    }

    /// Lets deliveries in flight end within a moment.
    async fn end(&mut self) {
        // The tasks hold the receivers; without tasks there is nothing to end.
        let _ = self.stopping.send(true);
        // What is owed is known after the next start.
        self.looks.abort_all();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(ENDS_WITHIN, ended).await.is_err() {
            self.tasks.abort_all();
        }
    }
}

async fn looked_at(shared: Arc<Shared>, user: UserId) -> Done {
    match shared.shards.ask(user, || Command::Query(Query::Alerts)).await {
        Answer::Alerts(alerts) => Done::Looked(user, alerts),
        _ => Done::Nothing,
    }
}

/// Delivers what a target is owed, one alert after the other.
async fn deliver(shared: Arc<Shared>, place: Place) -> Done {
    let (user, target) = (place.user, place.target);
    let ask = || shared.shards.ask(user, || Command::Query(Query::OwedAlert(target)));
    let mut stopping = shared.stopping.clone();
    // The alert that was attempted last, and its attempts.
    let mut last = (0, 0);
    // Failed attempts since a delivery, or since an alert was given up: the pauses grow with them, also if the alert was
    // dropped meanwhile.
    let mut in_a_row = 0;
    let mut answer = ask().await;
    while let Answer::OwedAlert(Some(owed)) = answer {
        if *stopping.borrow() {
            break;
        }
        tokio::select! {
            () = listed_markets(&shared.is_listed, &owed) => {}
            _ = stopping.changed() => break,
        }
        let number = owed.alert.number;
        let attempt = if last.0 == number { last.1 + 1 } else { 1 };
        last = (number, attempt);
        let outcome = shared.attempt(user, &owed, attempt, &place.in_flight).await;
        let is_to_repeat = matches!(outcome, AlertOutcome::Failed { gives_up: false, .. });
        in_a_row = if is_to_repeat { in_a_row + 1 } else { 0 };
        let note = || Command::NoteAlert { target, alert: number, outcome: outcome.clone() };
        answer = shared.shards.ask(user, note).await;
        match &answer {
            // Nothing is owed any more, as after a target was switched off: there is nothing to wait for.
            Answer::OwedAlert(None) => break,
            Answer::OwedAlert(Some(_)) => {}
            _ => return Done::Refused(place),
        }
        if is_to_repeat {
            let pause = shared.settings.first_retry * 4_u32.pow((in_a_row - 1).min(ATTEMPTS_MAX - 2));
            let pause = tokio::time::sleep(pause);
            tokio::pin!(pause);
            answer = loop {
                tokio::select! {
                    () = &mut pause => break ask().await,
                    () = place.woken.notified() => {
                        let next = ask().await;
                        // A target without failures was switched off and on again.
                        if !matches!(&next, Answer::OwedAlert(Some(owed)) if has_failed(owed)) {
                            in_a_row = 0;
                            break next;
                        }
                    }
                    _ = stopping.changed() => return Done::Worker(user),
                }
            };
        }
    }
    Done::Worker(user)
}

/// Whether the last attempts to deliver to the target of an alert failed. Of mail that is not known.
fn has_failed(owed: &OwedAlert) -> bool {
    owed.target.as_ref().is_none_or(|target| target.failures > 0)
}

/// Waits until the markets of the log are in the catalogue, if the alert is about one.
async fn listed_markets(is_listed: &watch::Receiver<bool>, owed: &OwedAlert) {
    if market_of(owed).is_some() && is_listed.clone().wait_for(|is_listed| *is_listed).await.is_err() {
        // The start is given up: the next one delivers.
        std::future::pending().await
    }
}

impl Shared {
    /// One attempt, with its row among the last deliveries.
    async fn attempt(&self, user: UserId, owed: &OwedAlert, attempt: u32, in_flight: &Semaphore) -> AlertOutcome {
        let way = owed.target.as_ref().map_or(Way::Mail, way_of);
        let sent = AssertUnwindSafe(self.send(user, owed, in_flight)).catch_unwind().await;
        // A panic ends only the attempt. The next one would panic too.
        let has_panicked = sent.is_err();
        let sent = sent.unwrap_or_else(|_| {
            tracing::error!(channel = way.name(), "an attempt to deliver an alert has panicked; it is given up");
            Err(Failed::because("the server has failed to send it"))
        });
        // Without a mailer, or an address that mail goes to, there is nothing to wait for.
        let is_in_vain = owed.target.is_none() && (self.mailer.is_none() || address(owed).is_none());
        let gives_up = has_panicked || is_in_vain || attempt >= ATTEMPTS_MAX;
        let outcome = match &sent {
            Ok(_) => DeliveryOutcome::Delivered,
            Err(failed) => match &owed.target {
                Some(target) if failed.is_gone() || target.failures + 1 >= FAILURES_MAX => DeliveryOutcome::Disabled,
                _ if gives_up => DeliveryOutcome::GivenUp,
                _ => DeliveryOutcome::Failed,
            },
        };
        match outcome {
            DeliveryOutcome::Delivered => self.figures.note_delivered(way),
            _ => self.figures.note_failed(way, outcome != DeliveryOutcome::Failed),
        }
        if let Some(target) = &owed.target {
            let status = sent.as_ref().map_or_else(|failed| failed.status, |status| *status);
            let error = sent.as_ref().err().map(|failed| failed.error.clone());
            let (at, event, kind) = (self.shards.clock.now(), owed.alert.uuid(user), owed.alert.kind);
            self.deliveries.note(user, target.id, Delivery { at, event, kind, attempt, outcome, status, error });
        }
        match sent {
            Ok(_) => AlertOutcome::Delivered,
            Err(failed) => AlertOutcome::Failed { is_gone: failed.is_gone(), error: failed.error, gives_up },
        }
    }

    /// Sends an alert to its receiver when there is a place. Returns the status of the answer, if it has one.
    async fn send(&self, user: UserId, owed: &OwedAlert, in_flight: &Semaphore) -> Result<Option<u16>, Failed> {
        let message = Message::of(user, owed, &self.catalog);
        let Some(target) = &owed.target else {
            let _place = self.mails_in_flight.acquire().await;
            return self.mail(address(owed), &message).await.map(|_| None);
        };
        // First the user's own: one that waits for it takes no place of others.
        let _own = in_flight.acquire().await;
        let _place = self.in_flight.acquire().await;
        self.post(user, target, &message).await.map(Some)
    }

    async fn post(&self, user: UserId, target: &AlertTarget, message: &Message) -> Result<u16, Failed> {
        self.poster.send(user, target, message, self.shards.clock.wall_now()).await
    }

    /// Returns the `Message-ID`.
    async fn mail(&self, to: Option<&str>, message: &Message) -> Result<String, Failed> {
        let mailer = self.mailer.as_ref().ok_or_else(|| Failed::because("this server sends no mail"))?;
        let to = to.ok_or_else(|| Failed::because("the account has no email address"))?;
        mailer.send(to, message).await.map_err(Failed::because)
    }
}

/// Where the mail of an alert goes. An earlier version has kept texts that mail cannot go to.
fn address(owed: &OwedAlert) -> Option<&str> {
    owed.email.as_deref().filter(|email| is_mailbox(email))
}

fn way_of(target: &AlertTarget) -> Way {
    match target.channel {
        Channel::Chat => Way::Chat,
        Channel::Webhook => Way::Webhook,
    }
}

/// Does what a route asks for.
async fn answered(shared: Arc<Shared>, request: Request) -> Done {
    match request {
        Request::Check { user, channel, url, reply } => {
            let checked = shared.rules.check(user, channel, &url).await;
            let checked = checked.map(|url| url.as_str().to_owned());
            reply.send(checked.map_err(|why| NoTarget::Wrong(why.to_owned())));
        }
        Request::TestMail { user, to, now, reply } => {
            let sent = match random_id() {
                Some(id) => shared.mail(Some(&to), &Message::test(user, id, now)).await,
                None => Err(Failed::because("the system gives no randomness")),
            };
            let at = shared.shards.clock.now();
            let sent = sent.map(|message_id| SentMail { message_id, at });
            reply.send(sent.map_err(|failed| NotSent::Failed(failed.error)));
        }
        Request::Test { user, target, now, reply } => {
            let sent = match random_id() {
                Some(id) => shared.test(user, &target, &Message::test(user, id, now)).await,
                None => Err(Failed::because("the system gives no randomness")),
            };
            reply.send(sent.map_err(|failed| NotSent::Failed(failed.error)));
        }
    }
    Done::Request
}

impl Shared {
    /// A test is sent once, and changes neither failures nor what is owed; it is among the last deliveries.
    async fn test(&self, user: UserId, target: &AlertTarget, message: &Message) -> Result<(), Failed> {
        let sent = self.post(user, target, message).await;
        let (outcome, status, error) = match &sent {
            Ok(status) => (DeliveryOutcome::Delivered, Some(*status), None),
            Err(failed) => (DeliveryOutcome::GivenUp, failed.status, Some(failed.error.clone())),
        };
        let (at, event, kind) = (self.shards.clock.now(), message.id, message.kind);
        self.deliveries.note(user, target.id, Delivery { at, event, kind, attempt: 1, outcome, status, error });
        sent.map(drop)
    }
}

/// A random UUID, of version 4.
fn random_id() -> Option<[u8; 16]> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).ok()?;
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    Some(id)
}

#[cfg(test)]
mod tests;
