use super::*;
use crate::sender::Sender;
use crate::testing::{NOW, PATIENCE, Receiver, ShardThread, eventually};
use edge::api::integrations::port::Integrations as _;
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
        let shard = ShardThread::start(users);
        let (owing, deliveries, figures) = (Owing::default(), Arc::<Deliveries>::default(), Arc::<Figures>::default());
        let (sender, requests) = Sender::new(false, owing.clone(), deliveries.clone());
        let look_up: LookUp = Arc::new(|host: String| {
            assert_ne!(host, PANICS);
            Box::pin(std::future::ready(Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])))
        });
        let dispatcher = Dispatcher::new(Parts {
            settings: Settings {
                chat_hosts: vec!["127.0.0.1".to_owned()],
                allow_private_targets: true,
                first_retry: Duration::from_millis(1),
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
            clock: Clock::fake(NOW),
            catalog: Arc::new(Catalog::new()),
            mailer: None,
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
