//! What orders cost that have ended and left memory: H2 to H10.
//!
//! The ended orders are made in process by the parts of a server (`past.rs`): each has a client order id and one fill,
//! and all of them are in the history store before anything is measured. Each comparison alternates in one run with the
//! same without them, or with few.
//!
//! | File | Answers |
//! |---|---|
//! | `past.rs` | – : worlds with orders that have left memory |
//! | `rows.rs` | H2, H3, H10: bytes of an ended order in memory, on disk, and written |
//! | `state.rs` | H4, H5: start and snapshot with many of them |
//! | `reads.rs` | H7, H8: one of them, and all of a user |
//! | `orders.rs` | H6, H9: orders beside the mover, and after many ended ones |

mod orders;
mod past;
mod reads;
mod rows;
mod state;

pub use rows::Task;

use crate::crowd::{Crowd, Open};
use crate::report::{ONE_BY_ONE, Report, Size};
use crate::seeded::Place;
use crate::world::World;
use engine::id::{OrderId, UserId};
use past::{Past, Store};

/// The scenario's name; `all` does not include it.
pub const NAME: &str = "history";
pub const QUESTION: &str = "what do orders cost that have ended and left memory?";

/// Users, markets and open orders of the servers.
const CROWD: Crowd = Crowd { users: 1_000, markets: 64, open: 10_000 };
const SMALL_CROWD: Crowd = Crowd { users: 4, markets: 8, open: 40 };
/// Ended orders of the server with few.
const FEW: usize = 10_000;
const SMALL_FEW: usize = 40;
/// In place of the option, in the tests.
const SMALL_ORDERS: usize = 400;

/// `orders` ended orders, of the full size.
pub fn run(size: Size, orders: usize, report: &mut Report) {
    let orders = size.pick(SMALL_ORDERS, orders);
    rows::in_memory(size, orders, report);
    let servers = Servers::make(size, orders, report);
    rows::on_disk(&servers, report);
    state::snapshots(&servers, size, report);
    reads::in_process(&servers, size, report);
    let running = state::starts(&servers, size, report);
    reads::over_http(&servers, running, size, report);
    reads::exports(size, orders, report);
    orders::beside_the_mover(size, report);
    orders::after_ended_ones(size, orders, report);
    report.note("ended orders", format!("{orders}, each with a client order id of 36 characters and one fill"));
    report.note("servers", size.pick(SMALL_CROWD, CROWD).to_string());
    report.rate_note(format!("{ONE_BY_ONE}; over HTTP as each row says"));
    report.durability("the store is synced and read back, as by a server; the log of servers: process");
    report.not_included("TLS, a network; rows that wait to be merged when a run ends are not merged by it");
}

/// Data directories of servers that are not running: one with few ended orders, one with many.
struct Servers {
    few: Served,
    many: Served,
}

/// The directory of a server.
struct Served {
    place: Place,
    /// Ended orders.
    count: usize,
    /// Some of them, with their users.
    ended: Vec<(UserId, OrderId)>,
    open: Vec<Open>,
}

impl Servers {
    fn make(size: Size, orders: usize, report: &mut Report) -> Servers {
        let few = Served::make(size, size.pick(SMALL_FEW, FEW));
        let (many, written) = rows::written_by(size, || Served::make(size, orders));
        rows::report_written(&written, orders, report);
        Servers { few, many }
    }
}

impl Served {
    fn make(size: Size, count: usize) -> Served {
        let crowd = size.pick(SMALL_CROWD, CROWD);
        let place = Place::seeded(crowd.users, size);
        let mut past = past_of(&place, crowd.markets);
        past.live(count, 0..crowd.users);
        let open = crowd.rest(&mut past.world, &mut past.out);
        // A start reads no log after this snapshot.
        past.depart();
        Served { count, ended: past.close(), open, place }
    }
}

/// A world in the directory of a server that is not running yet, with the users of `place`.
fn past_of(place: &Place, markets: u32) -> Past {
    let data = place.path().join("data");
    std::fs::remove_dir_all(&data).expect("the seeding left it");
    let mut past = Past::create(&data, place.segment_bytes(), Store::History, |record| World::new(markets, record));
    for key in &place.keys {
        past.world.add_trader(key.secret(), &mut past.out);
    }
    past
}
