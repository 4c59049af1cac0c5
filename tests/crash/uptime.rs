//! Samples of the uptime through kills (gateway/docs/status.md §1): at most the minute of the kill is lost.

use std::fs;
use tests::cases::Cases;
use tests::chance::Chance;
use tests::eventually;
use tests::exposition::scrape;
use tests::server::ServerDir;

/// Kills of the test.
const KILLS: u64 = 8;
const MINUTE: u64 = 60;
/// The header and the records of the file.
const RECORD_BYTES: usize = 128;

/// Minutes with a sample, in the order of time, of the whole file: each record is sound.
fn measured(file: &[u8]) -> Vec<u32> {
    let mut found = Vec::new();
    for record in file.chunks_exact(RECORD_BYTES).skip(1).filter(|record| record.iter().any(|byte| *byte != 0)) {
        let number = u32::from_le_bytes(*record.first_chunk().expect("four bytes"));
        let states = &record[4..RECORD_BYTES - 4];
        let sampled = states.iter().enumerate().filter(|(_, state)| **state != 0);
        found.extend(sampled.map(|(minute, _)| number * 120 + minute as u32));
    }
    found.sort_unstable();
    found
}

#[test]
fn a_kill_loses_no_finished_minute() {
    let cases = Cases::of("kills between samples");
    let mut chance = Chance::from_env("UPTIME_SEED");
    let mut place = ServerDir::new();
    place.set("admin", "listen", "\"127.0.0.1:0\"");
    let mut ahead = 0;
    place.clock_ahead(ahead);
    let file = place.data().join("uptime_minutes");
    let mut known: Vec<u32> = Vec::new();
    for kill in 0..KILLS {
        let mut server = place.start();
        let admin = server.admin().expect("the banner has its address");
        let counted = || scrape(admin).value("papertape_service_minutes_total", &[("service", "api"), ("state", "up")]);
        let minutes = chance.between(1, 5) as u64;
        for minute in 0..minutes {
            eventually("a sample", || (counted() >= (minute + 1) as f64).then_some(()));
            ahead += MINUTE;
            place.clock_ahead(ahead);
        }
        // At any point of the sample that follows.
        std::thread::sleep(std::time::Duration::from_micros(chance.between(0, 1_500_000) as u64));
        server.kill();
        let content = fs::read(&file).expect("it is there");
        assert_eq!(content.len(), 141_440);
        let now = measured(&content);
        let kept = known.iter().filter(|minute| now.contains(minute)).count();
        assert_eq!(kept, known.len(), "kill {kill}: minutes of earlier processes");
        // The first sample may repeat the minute of the kill before.
        assert!(
            now.len() as u64 + 1 >= known.len() as u64 + minutes,
            "kill {kill}: {} after {}",
            now.len(),
            known.len()
        );
        known = now;
        cases.one();
    }
    let server = place.start();
    assert!(!server.output().contains("the file of the uptime is damaged"), "{}", server.output());
    assert!(!place.data().join("uptime_minutes.damaged").exists());
}
