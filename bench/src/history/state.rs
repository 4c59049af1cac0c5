//! Start and snapshot of a server with many ended orders, beside one with few.

use super::{Served, Servers};
use crate::journal::Journal;
use crate::memory;
use crate::report::{Report, Size, timed};
use crate::server::Server;
use ::journal::{checkpoint, recover};
use engine::format::Formats;
use engine::shard::snapshot;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use wal::{Files, Lsn, Snapshots};

const ROUNDS: usize = 5;

/// H5: time and bytes of a snapshot, from the state that a start reads.
pub fn snapshots(servers: &Servers, size: Size, report: &mut Report) {
    let states = [&servers.few, &servers.many].map(|served| {
        let (state, _) = recover::look(&served.place.path().join("data"), false).expect("a sound log");
        state.check_all().expect("the accounts reconcile");
        let users = || state.users.iter().flat_map(|users| users.iter());
        let left: u64 = users().filter_map(|user| user.departed()).map(|left| u64::from(left.orders)).sum();
        let open: usize = users().map(|user| user.open_orders_count()).sum();
        assert_eq!((left, open), (served.count as u64, served.open.len()), "what has ended has left memory");
        state
    });
    let place = tempfile::tempdir().expect("a temporary directory");
    let log = place.path().join("log");
    let mut journal = Journal::create(&log, 1 << 20);
    let mut snapshots = Snapshots::of_start(&Files::open_existing(&log).expect("just made")).expect("just made");
    let (mut times, mut millis, mut bytes) = (Vec::new(), [Vec::new(), Vec::new()], [0; 2]);
    for round in 0..=size.pick(1, ROUNDS) {
        let mut seconds = [0.0; 2];
        // The order alternates: the second inherits the state of the machine from the first.
        for at in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
            let lsn = Lsn(2 * round as u64 + at as u64 + 1);
            let (took, written) =
                timed(|| checkpoint::write_snapshot(Formats::Newest, &mut snapshots, &states[at], lsn, 0));
            (seconds[at], bytes[at]) = (took, written.expect("room for a snapshot").bytes);
        }
        // The first round is cold.
        if round > 0 {
            times.push(seconds[1] / seconds[0]);
            (0..2).for_each(|at| millis[at].push(seconds[at] * 1e3));
        }
    }
    journal.tend();
    let copies = [0, 1].map(|at: usize| {
        let path = place.path().join(format!("copy-{at}"));
        let mut file = BufWriter::new(File::create(&path).expect("room for a snapshot"));
        let shards: Vec<_> = states[at].users.iter().collect();
        let written = snapshot::write(Formats::Newest, &states[at].markets, &shards, &mut file);
        written.and_then(|_| file.flush()).expect("room for a snapshot");
        memory::copy_bytes(&path) as f64
    });
    for (at, served) in [&servers.few, &servers.many].into_iter().enumerate() {
        report.middle(&format!("snapshot with {} ended orders", served.count), &millis[at], "ms");
        report.figure(&format!("its size with {} ended orders", served.count), bytes[at] as f64, "bytes");
        report.figure(&format!("keeper's copy with {} ended orders", served.count), copies[at], "bytes");
    }
    report.figure("keeper's copy with many ended orders: bytes beside few", copies[1] / copies[0], "×");
    report.ratio_to_itself("snapshot with many ended orders: time beside few", times);
    report.figure("snapshot with many ended orders: bytes beside few", bytes[1] as f64 / bytes[0] as f64, "×");
}

/// H4: from the beginning of the process to its first ready answer. Returns the server with many, which runs.
pub fn starts(servers: &Servers, size: Size, report: &mut Report) -> Server {
    let both = [&servers.few, &servers.many];
    let configs = both.map(|Served { place, .. }| place.write_config("process"));
    let (mut ratios, mut least) = (Vec::new(), [f64::MAX; 2]);
    for round in 0..=size.pick(1, ROUNDS) {
        let mut seconds = [0.0; 2];
        for at in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
            let (took, mut server) = timed(|| Server::start_on_pulse(&configs[at]));
            seconds[at] = took;
            server.kill();
        }
        // The first start finds the files of the making in the cache, or not.
        if round > 0 {
            ratios.push(seconds[1] / seconds[0]);
            (0..2).for_each(|at| least[at] = least[at].min(seconds[at]));
        }
    }
    for (at, served) in both.into_iter().enumerate() {
        report.figure(&format!("start with {} ended orders, least", served.count), least[at], "s");
    }
    report.ratio_to_itself("start with many ended orders: time beside few", ratios);
    Server::start_on_pulse(&configs[1])
}
