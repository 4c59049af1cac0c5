//! One hot market and its followers: frames a second, and the time from the write of the ladder to the read of the
//! frame.
//!
//! All servers are driven alike: a burst of changes, and the next one when the one before the last has arrived
//! everywhere. The references are a bare server that writes the same texts, encoded once, with one write for everything
//! that a listener lacks; the frame library's own `write_frame`; and as a peer tungstenite, fed and flushed. Two bursts
//! may be in flight, so our server and the others may write both together to a listener. Only frames that every
//! listener received are counted: the same number from each server.
//!
//! All servers run on the same core, with all their threads, and the listeners on another (`seats.rs`). The order of
//! the servers changes from round to round; our server, the only one with idle work, is stopped meanwhile.

use crate::floor::Floor;
use crate::listeners::{Arrivals, Listeners, Pace, subscription};
#[cfg(feature = "peers")]
use crate::peers::tungstenite;
use crate::reference::Kind;
use crate::report::{Report, Size, nanoseconds};
use crate::seats::Seats;
use crate::seeded::Place;
use crate::server::{Server, TICK_MICROS};
use crate::wire::Door;

const ROUNDS: usize = 5;
/// Raw writes are far below a quiet machine of two cores (measured: 17, 129, 184 and 1,000 thousand frames a second and
/// more), to one listener and to many, one at a time and by 8.
const RAW_FLOORS: [[Floor; 2]; 2] = [
    [
        Floor { of: "raw writes to one listener", least: 8_000.0 },
        Floor { of: "raw writes to one listener by 8", least: 40_000.0 },
    ],
    [
        Floor { of: "raw writes of frames", least: 60_000.0 },
        Floor { of: "raw writes of frames by 8", least: 300_000.0 },
    ],
];
/// Socket buffer of a listener that does not read.
const STALLED_BYTES: u32 = 4 << 10;
/// Changes of a burst.
const BURSTS: [u32; 2] = [1, 8];
const PATH: &str = "/v1/ws/market";
/// As rows name them.
const RAW: &str = "raw writes";
const LIBRARY: &str = "the library's write_frame";

/// A server and its listeners.
struct Side {
    name: &'static str,
    server: Server,
    listeners: Listeners,
    ticks: u64,
}

impl Side {
    /// Receives changes; adds up the processor time of the server.
    fn hear(&mut self, pace: Pace) -> Arrivals {
        let before = self.server.ticks();
        let heard = self.listeners.hear(&mut self.server, pace).expect("every change arrives, in order");
        self.ticks += self.server.ticks() - before;
        heard
    }
}

/// Each server sends this many changes in one round; ours is the first of the result.
fn hear_in_turns(sides: &mut [Side], round: usize, pace: Pace) -> Vec<Arrivals> {
    let count = sides.len();
    let (ours, others) = sides.split_first_mut().expect("ours is included");
    let mut heard: Vec<Option<Arrivals>> = (0..count).map(|_| None).collect();
    for place in (0..count).map(|place| (place + round) % count) {
        heard[place] = Some(match place {
            0 => ours.hear(pace),
            _ => ours.server.paused(|| others[place - 1].hear(pace)),
        });
    }
    heard.into_iter().flatten().collect()
}

pub fn run(size: Size, report: &mut Report) {
    let seats = Seats::take(report);
    // (listeners, bursts of one round, pause between changes of the slow load)
    let plan: &[(usize, u32, u64)] = match size {
        Size::Small => &[(3, 10, 1_000)],
        Size::Full => &[(1, 1_000, 1_000), (100, 400, 2_000), (1_000, 120, 20_000)],
    };
    for (listeners, bursts, pause_us) in plan.iter().copied() {
        measure(listeners, bursts, pause_us, &seats, size, report);
    }
    report.rate_note("a burst when the one before the last has arrived; a change every so often for the delays");
    report.not_included("TLS, a network, reading the tape; the listeners share the same cores");
}

fn measure(listeners_count: usize, bursts: u32, pause_us: u64, seats: &Seats, size: Size, report: &mut Report) {
    let place = Place::seeded(1, size);
    let mut server = seats.start_on_pulse(&place.write_config("process"));
    let door = Door { key: Some(place.keys[0].expose().to_owned()), ..Door::new(server.address, PATH) };
    let open =
        |door: &Door, text: Option<&str>| Listeners::open(door, listeners_count, text).expect("the server listens");
    let mut listeners = open(&door, Some(&subscription()));
    let template = place.path().join("frame");
    let text = listeners.sample(&mut server).expect("a change is sent");
    std::fs::write(&template, &text).expect("room for a frame");
    let ours = Side { name: "ours", server, listeners, ticks: 0 };
    let bare = |name, kind| {
        let server = seats.reference(kind, Some(&template));
        let listeners = open(&Door::new(server.address, "/"), None);
        Side { name, server, listeners, ticks: 0 }
    };
    let mut sides = vec![ours, bare(RAW, Kind::Coalesced), bare(LIBRARY, Kind::Library)];
    #[cfg(feature = "peers")]
    if report.with_peers() {
        sides.push(bare(tungstenite::NAME, Kind::Tungstenite));
    }

    let rounds = size.pick(1, ROUNDS);
    for changes in BURSTS {
        let name = |what: &str| format!("{listeners_count} listeners, by {changes}: {what}");
        let mut rates = vec![Vec::new(); sides.len()];
        sides.iter_mut().for_each(|side| side.ticks = 0);
        let told_frames = u64::from(changes) * u64::from(bursts) * listeners_count as u64;
        for round in 0..rounds {
            let heard = hear_in_turns(&mut sides, round, Pace::Full { changes, bursts });
            for ((side, heard), rates) in sides.iter().zip(heard).zip(&mut rates) {
                assert_eq!(heard.frames, told_frames, "{}: every change is one frame to every listener", side.name);
                rates.push(heard.rate());
            }
        }
        for (side, rates) in sides.iter().zip(&rates) {
            report.middle(&name(&format!("{}, frames", side.name)), rates, "a second");
        }
        let floor = &RAW_FLOORS[usize::from(listeners_count > 1)][usize::from(changes > 1)];
        for (side, others) in sides.iter().zip(&rates).skip(1) {
            let ratios = rates[0].iter().zip(others).map(|(ours, other)| ours / other).collect();
            report.ratio_above(&[(floor, &rates[1])], &name(&format!("beside {}", side.name)), ratios);
        }
        for side in &sides {
            let micros = side.ticks as f64 * TICK_MICROS / (rounds as f64 * told_frames as f64);
            report.figure(&name(&format!("processor time of a frame, {}", side.name)), micros, "us");
        }
    }

    let changes = size.pick(20, 500_000 / pause_us as u32);
    let mut delays: Vec<_> = sides.iter().map(|_| nanoseconds()).collect();
    for round in 0..rounds {
        let heard = hear_in_turns(&mut sides, round, Pace::Every { us: pause_us, changes });
        for (heard, delays) in heard.iter().zip(&mut delays) {
            delays.add(&heard.delay).expect("histograms of one kind");
        }
    }
    for (side, delays) in sides.iter().zip(&delays) {
        let what = format!("{listeners_count} listeners, every {:.1} ms: {}", pause_us as f64 / 1_000.0, side.name);
        report.percentiles(&what, delays);
    }

    // Listeners that do not read: the same drive with and without them.
    let ours = &mut sides[0];
    let pace = Pace::Full { changes: 8, bursts };
    let stalled_door = Door { receive_buffer_bytes: Some(STALLED_BYTES), ..door };
    let (mut ratios, mut with, mut without) = (Vec::new(), nanoseconds(), nanoseconds());
    for _ in 0..rounds {
        let alone = ours.hear(pace);
        let stalled = Listeners::open(&stalled_door, 1, Some(&subscription())).expect("the server listens");
        let beside = ours.hear(pace);
        drop(stalled);
        ratios.push(beside.rate() / alone.rate());
        with.add(&beside.delay).expect("histograms of one kind");
        without.add(&alone.delay).expect("histograms of one kind");
    }
    report.ratio_to_itself(&format!("{listeners_count} listeners: rate with one that does not read"), ratios);
    report.percentiles(&format!("{listeners_count} listeners, full speed: ours, alone"), &without);
    report.percentiles(&format!("{listeners_count} listeners, full speed: with it"), &with);
}
