use super::*;
use crate::http::code::Code;

fn limits(change: impl FnOnce(&mut Settings)) -> Arc<Limits> {
    let mut settings = crate::settings::Settings::defaults().limits;
    change(&mut settings);
    Arc::new(Limits::new(settings, vec![Network::parse("10.0.0.0/8").unwrap()]))
}

fn at(secs: u64) -> Timestamp {
    Timestamp(secs * 1_000_000 + 999_999)
}

/// Sends one request of a free key (2/s, 120/min). Returns the remaining counts of second and minute, in a
/// refusal after its wait.
fn send(limits: &Arc<Limits>, payer: Payer, secs: u64) -> Result<(u32, u32), (String, u32, u32)> {
    match limits.request(payer, Tier::Free, at(secs)) {
        Ok((state, _)) => Ok((state.remaining_per_second, state.remaining)),
        Err((state, refusal)) => {
            assert_eq!(refusal.code(), Code::RateLimitExceeded);
            let shown = format!("{refusal:?}");
            let wait = shown.split("retry_after_secs: Some(").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
            Err((wait.to_owned(), state.remaining_per_second, state.remaining))
        }
    }
}

#[test]
fn windows_are_fixed_to_the_clock() {
    let limits = limits(|_| {});
    let key = Payer::Key(5);
    assert_eq!(send(&limits, key, 600), Ok((1, 119)));
    assert_eq!(send(&limits, key, 600), Ok((0, 118)));
    // A refusal does not count, neither in the second nor in the minute.
    assert_eq!(send(&limits, key, 600), Err(("1".to_owned(), 0, 118)));
    assert_eq!(send(&limits, key, 600), Err(("1".to_owned(), 0, 118)));
    assert_eq!(send(&limits, key, 601), Ok((1, 117)));
    // Another key and a user have their own windows.
    assert_eq!(send(&limits, Payer::Key(6), 601), Ok((1, 119)));
    assert_eq!(send(&limits, Payer::User(UserId(5)), 601), Ok((1, 119)));
    // The next minute begins at 660, however late the first request of the last one was.
    for secs in 602..660 {
        send(&limits, key, secs).unwrap();
        send(&limits, key, secs).unwrap();
    }
    assert_eq!(send(&limits, key, 660), Ok((1, 119)));
    let state = limits.peek(key, Tier::Free, at(660));
    assert_eq!((state.remaining_per_second, state.remaining, state.reset), (1, 119, 720));
    assert_eq!(state.values()[5], "free");
}

#[test]
fn a_refusal_has_the_end_of_the_minute() {
    let limits = limits(|settings| settings.tiers[0].requests_per_second = 100);
    let key = Payer::Key(0);
    for n in 0..120u32 {
        assert!(send(&limits, key, 600 + u64::from(n / 60)).is_ok());
    }
    assert_eq!(send(&limits, key, 602), Err(("58".to_owned(), 100, 0)));
    assert_eq!(send(&limits, key, 659), Err(("1".to_owned(), 100, 0)));
    assert_eq!(send(&limits, key, 660), Ok((99, 119)));
}

#[test]
fn a_clock_that_lags_behind_another_thread_counts_in_the_later_window() {
    let limits = limits(|_| {});
    assert_eq!(send(&limits, Payer::Key(1), 601), Ok((1, 119)));
    assert_eq!(send(&limits, Payer::Key(1), 600), Ok((0, 118)));
    assert!(send(&limits, Payer::Key(1), 600).is_err());
}

#[test]
fn requests_in_flight_are_capped_per_key_and_leave_when_done() {
    let limits = limits(|settings| {
        settings.tiers[0] = TierLimits { in_flight: 2, requests_per_second: 10, ..settings.tiers[0] };
    });
    let request = |payer| limits.request(payer, Tier::Free, at(60));
    for payer in [Payer::Key(9), Payer::User(UserId(3))] {
        let first = request(payer).unwrap();
        let second = request(payer).unwrap();
        let (state, refusal) = request(payer).unwrap_err();
        // The refusal did not count: 8 of 10 are left.
        assert_eq!((state.remaining_per_second, refusal.code()), (8, Code::RateLimitExceeded));
        drop(first);
        drop(request(payer).unwrap());
        drop(second);
        assert_eq!(limits.with_meter(payer, 60, |meter| meter.in_flight.load(Relaxed)), 0);
    }
}

#[test]
fn placements_are_capped_per_user_and_per_server() {
    let limits = limits(|settings| (settings.placements_per_user, settings.placements_per_server) = (2, 3));
    let a = (limits.placement(UserId(1)).unwrap(), limits.placement(UserId(1)).unwrap());
    assert_eq!(limits.placement(UserId(1)).unwrap_err().code(), Code::RateLimited);
    let b = limits.placement(UserId(2)).unwrap();
    assert_eq!(limits.placement(UserId(3)).unwrap_err().code(), Code::RateLimited);
    drop((a, b));
    assert_eq!(limits.placements_now.load(Relaxed), 0);
    for user in 1..=3 {
        assert_eq!(limits.placements.get(user).load(Relaxed), 0, "of user {user}");
    }
    // A refused placement takes no slot.
    drop((limits.placement(UserId(3)).unwrap(), limits.placement(UserId(3)).unwrap()));
}

#[test]
fn addresses_have_windows_and_loopback_none() {
    let limits = limits(|_| {});
    let from = |text: &str| Source { address: text.parse().unwrap(), local: false };
    let public = |source, secs| limits.public(source, at(secs)).is_ok();
    assert!(public(from("1.2.3.4"), 60) && public(from("1.2.3.4"), 60) && !public(from("1.2.3.4"), 60));
    assert!(public(from("1.2.3.5"), 60));
    // One IPv6 customer has many addresses and one window.
    assert!(public(from("2001:db8::1"), 60) && public(from("2001:db8::2"), 60) && !public(from("2001:db8::3"), 60));
    let local = Source { address: "127.0.0.1".parse().unwrap(), local: true };
    assert!((0..1_000).all(|_| public(local, 60)));
    assert!(limits.bootstrap(from("1.2.3.4"), at(60)).is_ok());
    assert!(limits.bootstrap(from("1.2.3.4"), at(119)).is_err());
    for minute in 2..6 {
        assert!(limits.bootstrap(from("1.2.3.4"), at(minute * 60)).is_ok());
    }
    assert!(limits.bootstrap(from("1.2.3.4"), at(360)).is_err(), "five an hour");
    assert!(limits.bootstrap(from("1.2.3.4"), at(3_600)).is_ok());
}

#[test]
fn the_source_is_the_right_most_hop_that_is_not_ours() {
    let limits = limits(|_| {});
    for (peer, forwarded, expected, local) in [
        ("1.2.3.4", &["9.9.9.9"][..], "1.2.3.4", false),
        ("127.0.0.1", &["9.9.9.9"], "127.0.0.1", true),
        ("::1", &[], "::1", true),
        ("::ffff:127.0.0.1", &[], "127.0.0.1", true),
        ("10.0.0.1", &["9.9.9.9"], "9.9.9.9", false),
        ("10.0.0.1", &["127.0.0.1"], "127.0.0.1", false),
        ("10.0.0.1", &["6.6.6.6, 9.9.9.9, 10.1.1.1"], "9.9.9.9", false),
        ("10.0.0.1", &["6.6.6.6", "9.9.9.9 ,10.1.1.1"], "9.9.9.9", false),
        ("10.0.0.1", &["6.6.6.6, junk"], "10.0.0.1", false),
        ("10.0.0.1", &["6.6.6.6, junk, 10.0.0.2"], "10.0.0.2", false),
        ("10.0.0.1", &["10.0.0.9"], "10.0.0.9", false),
        ("10.0.0.1", &[], "10.0.0.1", false),
    ] {
        let lines: Vec<_> = forwarded.iter().map(|line| HeaderValue::from_static(line)).collect();
        let source = limits.source(peer.parse().unwrap(), lines.iter());
        assert_eq!(source, Source { address: expected.parse().unwrap(), local }, "{peer} {forwarded:?}");
    }
}

#[test]
fn a_full_table_shares_one_meter_and_makes_room_when_windows_pass() {
    let table = Table::<u32>::default();
    let caps = Caps { short: (1, 1), long: (60, 1) };
    let take = |who, secs| table.with(who, secs, 60, |meter| meter.take(secs, &caps)).is_ok();
    for who in 0..TABLE_ENTRIES_MAX as u32 {
        assert!(take(who, 60));
    }
    assert!(take(1_000_000, 61) && !take(1_000_001, 61), "newcomers share one meter");
    assert!(!take(7, 61), "those inside keep their own");
    assert!(take(1_000_001, 120) && take(1_000_002, 120), "the next minute has room again");
}

#[test]
fn slots_are_dense_and_never_move() {
    let slots: Slots<Meter> = Slots::default();
    for slot in [0, 1, 1_023, 1_024, 3_071, 3_072, 100_000] {
        slots.get(slot).in_flight.store(slot + 1, Relaxed);
    }
    for slot in [0, 1, 1_023, 1_024, 3_071, 3_072, 100_000] {
        assert_eq!(slots.get(slot).in_flight.load(Relaxed), slot + 1);
    }
}

#[test]
fn threads_never_take_more_than_a_window_holds() {
    let limits = limits(|settings| {
        settings.tiers[0] = TierLimits {
            requests_per_second: 1_000,
            requests_per_minute: 1_500,
            in_flight: 1_000_000,
            ..settings.tiers[0]
        };
    });
    let passed = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..2_000u64 {
                    if limits.request(Payer::Key(0), Tier::Free, at(60 + n / 1_000)).is_ok() {
                        passed.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    let state = limits.peek(Payer::Key(0), Tier::Free, at(61));
    assert_eq!(passed.load(Relaxed), 1_500 - state.remaining);
    assert!(passed.load(Relaxed) <= 1_500, "{passed:?}");
}
