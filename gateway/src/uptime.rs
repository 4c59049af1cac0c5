//! Uptime of the parts of the server (gateway/docs/status.md §1): one sample a minute, which IO threads measure as
//! `/v1/status` does, in a small file of the data directory.

mod sample_file;
pub mod samples;

pub use sample_file::FILE;

use crate::incidents::IncidentsFile;
use edge::api::health::Measured;
use edge::api::status::{Incident, Incidents, MeasuredDay, Service, Uptime};
use engine::time::MINUTE;
use host::clock::Clock;
use host::job::{Next, Work};
use host::thread::Stop;
use parking_lot::RwLock;
use sample_file::SampleFile;
use samples::{Sample, Samples};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

/// How often the minute, and the file of incidents, are looked at.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long an IO thread may take to answer; longer than the store may take for an order.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// How often a stop is looked for meanwhile.
const STOP_CHECK_EVERY: Duration = Duration::from_millis(100);

/// Asks one IO thread.
pub type Ask = Sender<SyncSender<Measured>>;

/// What the routes and the metrics read.
#[derive(Default)]
pub struct Measurements {
    /// Both are locked only to be copied or replaced.
    days: RwLock<Option<Arc<[MeasuredDay]>>>,
    incidents: RwLock<Option<Arc<[Incident]>>>,
    incidents_are_broken: AtomicBool,
    /// Minutes since the start that each service was down, and up.
    minutes: [[AtomicU64; 2]; 4],
}

impl Uptime for Measurements {
    fn days(&self) -> Arc<[MeasuredDay]> {
        self.days.read().clone().unwrap_or_default()
    }
}

impl Incidents for Measurements {
    fn incidents(&self) -> Arc<[Incident]> {
        self.incidents.read().clone().unwrap_or_default()
    }
}

impl Measurements {
    /// Whether the file of incidents has a defect now, or cannot be read.
    pub fn incidents_are_broken(&self) -> bool {
        self.incidents_are_broken.load(Relaxed)
    }

    /// Minutes measured since the start: the service, `up` or `down`, and their number.
    pub fn minutes(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        Service::ALL.into_iter().flat_map(|service| {
            let of = |is_up: bool| self.minutes[service as usize][usize::from(is_up)].load(Relaxed);
            [(service.id(), "up", of(true)), (service.id(), "down", of(false))]
        })
    }

    fn count(&self, sample: &Sample) {
        for (minutes, state) in self.minutes.iter().zip(sample) {
            if let Some(is_up) = state {
                minutes[usize::from(*is_up)].fetch_add(1, Relaxed);
            }
        }
    }
}

/// The work of the job `status`: a sample in each minute, and incidents as their file changes.
pub struct Measuring {
    clock: Clock,
    asks: Vec<Ask>,
    /// Whether the core is on the IO thread.
    is_inline: bool,
    samples: Samples,
    file: SampleFile,
    incidents: IncidentsFile,
    measurements: Arc<Measurements>,
    /// The minute of the last sample of this process.
    last: Option<u32>,
}

impl Measuring {
    /// Goes on with the samples of a data directory. `asks`: one for each IO thread.
    pub fn open(dir: &Path, incidents: &Path, clock: Clock, asks: Vec<Ask>, is_inline: bool) -> Measuring {
        let (file, samples) = SampleFile::open(dir);
        let measurements = Arc::<Measurements>::default();
        *measurements.days.write() = Some(samples.days().into());
        let incidents = IncidentsFile::new(incidents);
        let mut measuring = Measuring { clock, asks, is_inline, samples, file, incidents, measurements, last: None };
        measuring.look_at_incidents();
        measuring
    }

    pub fn measurements(&self) -> Arc<Measurements> {
        self.measurements.clone()
    }

    fn look_at_incidents(&mut self) {
        let Some(read) = self.incidents.look() else { return };
        self.measurements.incidents_are_broken.store(read.is_err(), Relaxed);
        if let Ok(incidents) = read {
            *self.measurements.incidents.write() = Some(incidents.into());
        }
    }

    /// Asks every IO thread. `None` for all services: the server stops.
    fn measured(&self, stop: &Stop) -> Sample {
        let (sender, answers) = sync_channel(self.asks.len());
        for ask in &self.asks {
            match ask.try_send(sender.clone()) {
                // A full queue has the request of the minute before, which was not answered.
                Ok(()) | Err(TrySendError::Full(_)) => {}
                Err(TrySendError::Closed(_)) => return Sample::default(),
            }
        }
        drop(sender);
        let (begun, mut found) = (Instant::now(), Vec::new());
        while found.len() < self.asks.len() {
            // The first request waits until the listener opens.
            let is_late = self.last.is_some() && begun.elapsed() >= ANSWER_WITHIN;
            if stop.is_set() {
                return Sample::default();
            }
            match answers.recv_timeout(STOP_CHECK_EVERY) {
                Ok(measured) => found.push(measured),
                Err(RecvTimeoutError::Timeout) if !is_late => {}
                Err(RecvTimeoutError::Timeout) => break,
                // An IO thread has ended, or one has too many requests already.
                Err(RecvTimeoutError::Disconnected) => {
                    if self.asks.iter().any(Sender::is_closed) {
                        return Sample::default();
                    }
                    break;
                }
            }
        }
        judged(&found, self.asks.len(), self.is_inline)
    }
}

/// The sample of a minute: what the IO threads measured that answered.
fn judged(found: &[Measured], threads: usize, is_inline: bool) -> Sample {
    let all_answer = found.len() == threads;
    let of = |what: fn(&Measured) -> bool| (!found.is_empty()).then(|| found.iter().all(what));
    let engine = of(|measured| measured.matching_engine);
    [
        Some(all_answer),
        of(|measured| measured.market_data),
        // An inline core is on the thread that does not answer.
        if engine.is_none() && is_inline { Some(false) } else { engine },
        Some(all_answer && found.iter().all(|measured| measured.websocket)),
    ]
}

impl Work for Measuring {
    type Error = Infallible;

    fn take_turn(&mut self, stop: &Stop) -> Result<Next, Infallible> {
        self.look_at_incidents();
        let mut minute = self.clock.now().minute();
        if self.last != Some(minute) {
            let sample = self.measured(stop);
            if self.last.is_none() {
                minute = self.clock.now().minute();
            }
            if sample != Sample::default() {
                self.measurements.count(&sample);
                let span = self.samples.note(minute, &sample);
                self.file.write(&self.samples, span);
                *self.measurements.days.write() = Some(self.samples.days().into());
            }
            self.last = Some(minute);
        }
        let left = MINUTE - self.clock.now().0 % MINUTE;
        Ok(Next::SleepFor(LOOK_EVERY.min(Duration::from_micros(left))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_does_not_answer_is_down() {
        let measured = |market_data, matching_engine, websocket| Measured { market_data, matching_engine, websocket };
        let well = measured(true, true, true);
        let (up, down) = (Some(true), Some(false));
        let rows: [(&[Measured], usize, bool, Sample); 9] = [
            (&[well], 1, true, [up, up, up, up]),
            (&[measured(false, true, true)], 1, true, [up, down, up, up]),
            (&[measured(true, false, true)], 1, true, [up, up, down, up]),
            (&[measured(true, true, false)], 1, true, [up, up, up, down]),
            (&[], 1, true, [down, None, down, down]),
            (&[], 2, false, [down, None, None, down]),
            (&[well], 2, false, [down, up, up, down]),
            (&[well, measured(true, false, true)], 2, false, [up, up, down, up]),
            (&[well, well], 2, false, [up, up, up, up]),
        ];
        for (found, threads, is_inline, expected) in rows {
            assert_eq!(judged(found, threads, is_inline), expected, "{found:?} of {threads}");
        }
        println!("samples: {} cases", rows.len());
    }

    /// A sample in each minute of server time, also after a leap, and none while the server stops.
    #[test]
    fn each_minute_has_one_sample() {
        let dir = tempfile::tempdir().expect("a directory");
        let clock = Clock::fake(engine::time::Timestamp(1_790_932_445_000_000));
        let (ask, mut asked) = tokio::sync::mpsc::channel::<SyncSender<Measured>>(1);
        let answering = std::thread::spawn(move || {
            let mut count = 0;
            while let Some(answer) = asked.blocking_recv() {
                let _ = answer.try_send(Measured { market_data: true, matching_engine: count != 1, websocket: true });
                count += 1;
            }
            count
        });
        let incidents = dir.path().join("incidents.json");
        let mut measuring = Measuring::open(dir.path(), &incidents, clock.clone(), vec![ask], true);
        let (stop, measurements) = (Stop::new(), measuring.measurements());
        let mut minutes = |seconds: u64| {
            clock.set(clock.now().plus(seconds * engine::time::SECOND));
            measuring.take_turn(&stop).expect("it cannot fail");
            let days = measurements.days();
            let day = days.last().expect("a day");
            (days.len(), day.services[0].measured, day.services[2].down)
        };
        // (seconds that pass, days, measured minutes and minutes down of the last day)
        let rows = [
            (0, (1, 1, 0)),
            (10, (1, 1, 0)),
            (50, (1, 2, 1)),
            (60, (1, 3, 1)),
            (3_600, (1, 4, 1)),
            (86_400, (2, 1, 0)),
        ];
        for (seconds, expected) in rows {
            assert_eq!(minutes(seconds), expected, "after {seconds} s");
        }
        let counted: Vec<_> = measurements.minutes().filter(|(_, _, count)| *count > 0).collect();
        assert_eq!(counted[2..4], [("matching_engine", "up", 4), ("matching_engine", "down", 1)]);
        stop.set();
        assert_eq!(minutes(60), (2, 1, 0), "no sample of a stop");
        drop(measuring);
        assert_eq!(answering.join().expect("no panic"), 6);
        // The next process goes on with them.
        let (_, samples) = SampleFile::open(dir.path());
        assert_eq!(samples.days()[..], measurements.days()[..]);
        println!("minutes: {} cases", rows.len() + 2);
    }
}
