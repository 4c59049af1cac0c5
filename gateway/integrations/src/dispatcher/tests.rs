use super::*;
use crate::sender::Sender;
use crate::settings::{Mail, MailBy};
use crate::testing::{AlertShard as _, NOW, PATIENCE, Receiver, eventually};
use edge::api::integrations::port::Integrations as _;
use edge::testing::ShardThread;
use engine::command::TargetChange;
use engine::id::MarketId;
use engine::user::alerts::AlertKinds;
use engine::view::AboutView;

use host::job::{Job, RunningJob};
use std::net::{IpAddr, Ipv4Addr};

/// The host whose look-up panics.
const PANICS: &str = "panics.example";

/// A shard, the job that delivers, and the port of the routes.
struct Lab {
    shard: ShardThread,
    owing: Owing,
    deliveries: Arc<Deliveries>,
    figures: Arc<Figures>,
    sender: Sender,
    job: Option<RunningJob>,
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            job.stop();
            job.join();
        }
    }
}

impl Lab {
    fn new(users: u64) -> Lab {
        Lab::with(users, Duration::from_millis(1))
    }

    /// With this pause after a first failure.
    fn with(users: u64, first_retry: Duration) -> Lab {
        Lab::of(users, first_retry, None)
    }

    /// With this mailer.
    fn of(users: u64, first_retry: Duration, mailer: Option<Mailer>) -> Lab {
        let shard = ShardThread::start(NOW, users);
        let (owing, deliveries, figures) = (Owing::default(), Arc::<Deliveries>::default(), Arc::<Figures>::default());
        let (sender, requests) = Sender::new(mailer.is_some(), owing.clone(), deliveries.clone());
        let look_up: LookUp = Arc::new(|_, host: String| {
            assert_ne!(host, PANICS);
            Box::pin(std::future::ready(Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])))
        });
        let dispatcher = Dispatcher::new(Parts {
            settings: Settings {
                chat_hosts: vec!["127.0.0.1".to_owned()],
                allow_private_targets: true,
                first_retry,
                // Longer than a test waits.
                timeout: 4 * PATIENCE,
                signature_header: "X-Svc-Signature".to_owned(),
                mail: None,
            },
            owing: owing.clone(),
            requests,
            deliveries: deliveries.clone(),
            figures: figures.clone(),
            inboxes: vec![shard.inbox.clone()],
            ended: Arc::new(edge::ended_rows::NoEndedRows),
            clock: Clock::fake(NOW),
            catalog: Arc::new(Catalog::new()),
            is_listed: watch::channel(true).1,
            mailer,
            look_up,
            known: Vec::new(),
            delivers: true,
        });
        let job = Job::new("alerts", SLEEP_MAX, move || dispatcher).start(&Stop::new()).expect("a thread");
        Lab { shard, owing, deliveries, figures, sender, job: Some(job) }
    }

    /// All targets of a user are owed an alert.
    fn raise(&self, user: u64, key: u8) {
        self.shard.raise(user, key);
        self.owing.add(UserId(user));
    }

    /// What all targets of a user are owed.
    fn owed(&self, user: u64) -> usize {
        match self.shard.ask(user, Command::Query(Query::Alerts)) {
            Answer::Alerts(alerts) => alerts.targets.iter().map(|view| view.owed).sum(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_targets_of_a_user_leave_places_for_others() {
    let (lab, receiver) = (Lab::new(2), Receiver::start());
    for (user, count) in [(1, 5), (2, 1)] {
        for _ in 0..count {
            lab.shard.add(user, Channel::Webhook, &receiver.url(&format!("/{user}")));
            lab.shard.add(user, Channel::Chat, &receiver.url(&format!("/{user}")));
        }
    }
    let of = |paths: &[String], user: &str| paths.iter().filter(|path| *path == user).count();
    lab.raise(1, 1);
    let first = receiver.held(IN_FLIGHT_OF_USER_MAX);
    assert_eq!(of(&first, "/1"), IN_FLIGHT_OF_USER_MAX);
    lab.raise(2, 2);
    let paths = receiver.held(IN_FLIGHT_OF_USER_MAX + 2);
    assert_eq!((of(&paths, "/1"), of(&paths, "/2")), (IN_FLIGHT_OF_USER_MAX, 2));
    // A test takes no place of deliveries, and is one of its user.
    let Answer::Alerts(alerts) = lab.shard.ask(1, Command::Query(Query::Alerts)) else { panic!("alerts") };
    let test = || lab.sender.test(UserId(1), &alerts.targets[0].target, NOW);
    let tested = test();
    assert_eq!(of(&receiver.held(paths.len() + 1), "/1"), IN_FLIGHT_OF_USER_MAX + 1);
    let runtime = host::runtime::runtime().expect("a runtime");
    assert_eq!(runtime.block_on(test()), Err(NotSent::Busy));
    let mut answered = receiver.answer();
    assert_eq!(runtime.block_on(tested), Ok(()));
    while answered < 13 {
        assert!(receiver.held(1).len() <= IN_FLIGHT_OF_USER_MAX);
        answered += receiver.answer();
    }
    eventually("all are delivered", || (lab.owed(1) + lab.owed(2) == 0).then_some(()));
    assert_eq!((lab.figures.delivered(Way::Webhook), lab.figures.delivered(Way::Chat)), (6, 6));
    println!("{answered} requests");
}

#[test]
fn an_attempt_that_panics_gives_up_its_alert_alone() {
    let (lab, receiver) = (Lab::new(1), Receiver::start());
    let broken = lab.shard.add(1, Channel::Webhook, &format!("http://{PANICS}:{}/", receiver.port())).id;
    let works = lab.shard.add(1, Channel::Webhook, &receiver.url("/works")).id;
    // The target has its place again after each.
    for count in 1..=3 {
        lab.raise(1, count);
        receiver.held(1);
        receiver.answer();
        eventually("nothing is owed", || (lab.owed(1) == 0).then_some(()));
        let rows = lab.deliveries.of(UserId(1), broken);
        assert_eq!(rows.len(), usize::from(count));
        let row = &rows[0];
        assert_eq!((row.attempt, row.outcome, row.status), (1, DeliveryOutcome::GivenUp, None));
        assert_eq!(row.error.as_deref(), Some("the server has failed to send it"));
        assert_eq!(lab.deliveries.of(UserId(1), works).len(), usize::from(count));
        let counts = (lab.figures.failed(Way::Webhook), lab.figures.given_up(Way::Webhook));
        assert_eq!(counts, (u64::from(count), u64::from(count)));
    }
}

/// A delivery that stalls wakes nothing: the stop itself does.
#[test]
fn a_stop_does_not_wait_for_a_delivery() {
    let (mut lab, receiver) = (Lab::new(1), Receiver::start());
    lab.shard.add(1, Channel::Webhook, &receiver.url("/stalls"));
    lab.raise(1, 1);
    receiver.held(1);
    let job = lab.job.take().expect("it runs");
    job.stop();
    assert!(job.join_within(PATIENCE));
    assert_eq!(lab.owed(1), 1, "it is owed still");
}

/// A pause that a test does not wait for.
const LONG: Duration = Duration::from_secs(3_600);

/// The failures of the first target of user 1.
fn failures(lab: &Lab) -> u32 {
    match lab.shard.ask(1, Command::Query(Query::Alerts)) {
        Answer::Alerts(alerts) => alerts.targets[0].target.failures,
        other => panic!("{other:?}"),
    }
}

/// A target that failed waits for its pause, and not if it was switched off and on.
#[test]
fn a_target_that_is_switched_on_again_is_tried_again() {
    let (lab, receiver) = (Lab::with(1, LONG), Receiver::start());
    let target = lab.shard.add(1, Channel::Webhook, &receiver.url("/hook")).id;
    for round in 1..=2 {
        lab.raise(1, 2 * round);
        receiver.held(1);
        receiver.answer_with("503 Away");
        eventually("the failure is noted", || (failures(&lab) == 1).then_some(()));
        for is_enabled in [Some(false), Some(true)] {
            let change = TargetChange { is_enabled, ..TargetChange::default() };
            let changed = lab.shard.ask(1, Command::ChangeAlertTarget { channel: Channel::Webhook, target, change });
            assert!(matches!(changed, Answer::AlertTarget(_)), "{changed:?}");
        }
        lab.raise(1, 2 * round + 1);
        receiver.held(1);
        receiver.answer();
        eventually("it is delivered", || (lab.owed(1) == 0).then_some(()));
        // The first attempt at its alert.
        assert_eq!(lab.deliveries.of(UserId(1), target)[0].attempt, 1, "round {round}");
    }
    println!("targets switched on again: 2 cases");
}

/// One that was not switched keeps its pause, however often it is looked at.
#[test]
fn a_pause_is_kept_when_another_alert_comes() {
    let (lab, receiver) = (Lab::with(1, LONG), Receiver::start());
    let target = lab.shard.add(1, Channel::Webhook, &receiver.url("/hook")).id;
    lab.raise(1, 1);
    receiver.held(1);
    receiver.answer_with("503 Away");
    eventually("the failure is noted", || (failures(&lab) == 1).then_some(()));
    let works = lab.shard.add(1, Channel::Chat, &receiver.url("/chat")).id;
    for count in 1..=3 {
        lab.raise(1, 1 + count);
        assert_eq!(receiver.held(1), ["/chat"]);
        receiver.answer();
        eventually("the other has it", || {
            (lab.deliveries.of(UserId(1), works).len() == usize::from(count)).then_some(())
        });
    }
    assert_eq!(lab.deliveries.of(UserId(1), target).len(), 1);
}

/// The place of a worker is free after its panic: the next alert finds it.
#[test]
fn a_worker_that_panics_leaves_its_place() {
    let runtime = host::runtime::runtime().expect("a runtime");
    let workers = Workers::default();
    let (user, targets) = (UserId(1), [None, Some(1), Some(2)]);
    for panics in [true, false, true] {
        for target in targets {
            let place = workers.begin(user, target, None).expect("it has no worker");
            assert!(workers.begin(user, target, None).is_none(), "one for each target");
            assert!(workers.begin(UserId(2), target, None).is_some(), "users have their own");
            let worker = async move {
                let _place = place;
                assert!(!panics, "a question to a shard");
            };
            let ended = runtime.block_on(async { tokio::spawn(worker).await });
            assert_eq!(ended.is_err(), panics);
        }
        assert!(workers.0.lock().is_empty());
    }
    println!("places of workers: 9 cases");
}

/// An alert about a market waits until the markets of the log are there, and no longer.
#[test]
fn an_alert_waits_for_the_first_listing() {
    let owed = |about| OwedAlert { about, ..owed_key() };
    let rows = [(AboutView::Market(MarketId(0)), true), (AboutView::Gone, false)];
    let runtime = host::runtime::runtime().expect("a runtime");
    for (about, waits) in rows {
        let (listed, is_listed) = watch::channel(false);
        let owed = owed(about);
        runtime.block_on(async {
            let mut waiting = Box::pin(listed_markets(&is_listed, &owed));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert_eq!(waiting.as_mut().poll(&mut context).is_pending(), waits, "{:?}", owed.about);
            listed.send_replace(true);
            if waits {
                waiting.await;
            }
        });
    }
    println!("first listings: 2 cases");
}

/// An alert that is owed to a target of user 1.
fn owed_key() -> OwedAlert {
    let shard = ShardThread::start(NOW, 1);
    let target = shard.add(1, Channel::Webhook, "http://127.0.0.1/").id;
    shard.raise(1, 1);
    match shard.ask(1, Command::Query(Query::OwedAlert(Some(target)))) {
        Answer::OwedAlert(Some(owed)) => *owed,
        other => panic!("{other:?}"),
    }
}

/// An address of an earlier version to which mail cannot go has one attempt; a mail server that is away has more.
#[test]
fn mail_to_no_mailbox_is_given_up_immediately() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = dir.path().join("out");
    let mail = Mail { by: MailBy::Folder(out.clone()), from: "alerts@example.net".to_owned(), credentials: None };
    let mailer = Mailer::new(&mail, PATIENCE).expect("a folder");
    let rows = ["a@[127.0.0.1]", "\"<x>\"@y.z", "trader", "a@b.example\r\nBcc: c@d.example", ""];
    let lab = Lab::of(rows.len() as u64 + 2, LONG, Some(mailer));
    let give = |user: u64, email: &str| {
        lab.shard.ask(user, Command::NoteEmail { email: email.to_owned() });
        let chosen = lab.shard.ask(user, Command::ChooseMail { on: AlertKinds::ALL, off: AlertKinds::of(&[]) });
        assert!(matches!(chosen, Answer::Alerts(_)), "{email:?}: {chosen:?}");
        lab.raise(user, user as u8);
    };
    let counts = || (lab.figures.failed(Way::Mail), lab.figures.given_up(Way::Mail));
    for (email, user) in rows.iter().zip(1..) {
        give(user, email);
        eventually("it is given up", || (counts() == (user, user)).then_some(()));
    }
    let last = rows.len() as u64 + 1;
    give(last, "trader@example.net");
    eventually("it is delivered", || (lab.figures.delivered(Way::Mail) == 1).then_some(()));
    std::fs::remove_dir_all(&out).expect("the folder");
    give(last + 1, "trader@example.net");
    eventually("it has failed", || (counts() == (last, last - 1)).then_some(()));
    println!("addresses without mail: {} cases", rows.len() + 2);
}

/// The users that have waited longest are taken first, each once, and not more than asked for.
#[test]
fn users_wait_in_a_queue() {
    let owing = Owing::default();
    for user in [3, 1, 3, 2, 1] {
        owing.add(UserId(user));
    }
    // (how many are taken, those that are)
    let rows: [(usize, &[u64]); 4] = [(0, &[]), (2, &[3, 1]), (2, &[2, 3]), (usize::MAX, &[])];
    for (row, (count, expected)) in rows.iter().enumerate() {
        let taken: Vec<u64> = owing.take(*count).iter().map(|user| user.0).collect();
        assert_eq!(taken, *expected, "row {row}");
        if row == 1 {
            owing.add(UserId(3));
        }
    }
    assert!(owing.is_empty());
    println!("users in the queue: {} cases", rows.len());
}
