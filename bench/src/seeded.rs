//! The directory of a measured server: seeded users, a configuration, and the content of its log afterwards.

use crate::journal::Journal;
use crate::report::Size;
use crate::world::{Out, World};
use edge::http::auth::RawKey;
use engine::id::UserId;
use engine::mutation::codec;
use engine::time::Timestamp;
use engine::user::WalletKind;
use journal::recover;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MOVED_WITHIN: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Removed when dropped.
pub struct Place {
    place: TempDir,
    segment_bytes: u64,
    /// One for each user.
    pub keys: Vec<RawKey>,
}

/// The content of the log of a killed server.
pub struct Kept {
    pub orders: u64,
    /// The state of each user without times.
    pub text: String,
}

impl Place {
    /// With this many users, each with one key and ten million dollars, in the log of a server that is not running yet.
    pub fn seeded(users_count: usize, size: Size) -> Place {
        Place::seeded_in(users_count, size.pick(1 << 20, 64 << 20))
    }

    /// The same with segments of this size.
    pub fn seeded_in(users_count: usize, segment_bytes: u64) -> Place {
        let place = tempfile::tempdir().expect("a temporary directory");
        let keys = seed(&place.path().join("data"), segment_bytes, users_count);
        Place { place, segment_bytes, keys }
    }

    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Path of its recording, once one is written.
    pub fn tape(&self) -> PathBuf {
        self.path().join("tape.ndjson")
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// A configuration with all checks on and limits that are not reached.
    pub fn write_config(&self, durability: &str) -> PathBuf {
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n\
             [data]\ndir = {:?}\n\
             [journal]\ndurability = \"{durability}\"\nsegment_bytes = {}\n\
             [venue]\nkind = \"replay\"\ntape = {:?}\nfollow = true\n\
             [http]\nidle_timeout_ms = 3600000\nconnections_max = 100000\n\
             [clock]\nleap_wait_s = 0\n\
             [book]\nstale_after_s = 3600\n\
             [flags]\ntrade_quote_max_age_ms = 3600000\n\
             [limits]\nplacements_per_user = 1000000\nplacements_per_server = 1000000\n\
             [limits.tiers.enterprise]\n\
             requests_per_second = 1000000\nrequests_per_minute = 1000000\nin_flight = 1000000\n\
             max_ws_connections = 100000\n",
            self.path().join("data"),
            self.segment_bytes,
            self.tape(),
        );
        let path = self.path().join("bench.toml");
        std::fs::write(&path, text).expect("room for a configuration");
        path
    }

    /// The same for a server whose memory is measured: nothing is prefaulted.
    pub fn write_config_to_weigh(&self) -> PathBuf {
        let path = self.write_config("process");
        let mut text = std::fs::read_to_string(&path).expect("just written");
        text.push_str("[engine]\nprefault_bytes = 0\n");
        std::fs::write(&path, text).expect("room for a configuration");
        path
    }

    /// Count of the orders, and of those of them that have left memory, as a start would find them; `None` if the log
    /// cannot be read now, because a server writes to it.
    pub fn orders(&self) -> Option<(usize, usize)> {
        let (state, _) = recover::look(&self.path().join("data"), false).ok()?;
        state.check_all().ok()?;
        let users = || state.users.iter().flat_map(|users| users.iter());
        let left: usize = users().filter_map(|user| user.departed()).map(|left| left.orders as usize).sum();
        Some((users().map(|user| user.orders().len()).sum::<usize>() + left, left))
    }

    /// Returns when a snapshot of the running server lacks orders that have left memory; `meanwhile` runs between two
    /// looks. Snapshots are written at low priority, so a busy machine delays them.
    pub fn wait_until_moved(&self, mut meanwhile: impl FnMut()) {
        let begun = Instant::now();
        while self.orders().is_none_or(|(_, left)| left == 0) {
            assert!(begun.elapsed() < MOVED_WITHIN, "ended orders leave memory");
            meanwhile();
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The content of the log; the server is killed.
    pub fn kept(&self) -> Kept {
        let (state, _) = recover::look(&self.path().join("data"), true).expect("a sound log");
        state.check_all().expect("the accounts reconcile");
        let mut kept = Kept { orders: 0, text: String::new() };
        let mut users: Vec<_> = state.users.iter().flat_map(|users| users.iter()).collect();
        users.sort_by_key(|user| user.id);
        for user in users {
            let cash = user.wallet_of(WalletKind::Api).map_or(0, |wallet| wallet.cash.0);
            let reserved: i64 = user.open_orders().map(|order| order.reserved_cash().0).sum();
            let (left_orders, left_fills) =
                user.departed().map_or((0, 0), |left| (left.orders as usize, left.fills as usize));
            let (orders, fills) = (user.orders().len() + left_orders, user.fills().len() + left_fills);
            let open = user.open_orders_count();
            kept.orders += orders as u64;
            writeln!(kept.text, "{} {cash} {reserved} {orders} {open} {fills}", user.id)
                .expect("writing to a string succeeds");
        }
        kept
    }
}

fn seed(data: &Path, segment_bytes: u64, count: usize) -> Vec<RawKey> {
    let mut journal = Journal::create(data, segment_bytes);
    let mut world = World::new(0, &mut |_, _, _| {});
    let mut out = Out::new(|owner: UserId, now: Timestamp, payload: &[u8]| {
        journal.append(codec::VERSION, owner.0, now.0, payload);
    });
    let mint = || RawKey::mint("svc", "live").expect("the system has randomness");
    let keys: Vec<_> = (0..count).map(|_| mint()).collect();
    for key in &keys {
        world.add_trader(key.secret(), &mut out);
    }
    drop(out);
    journal.end();
    keys
}
