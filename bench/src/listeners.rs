//! Sockets that listen to changes, all on one thread: counts frames, and measures how long each was in flight.

use crate::pulse::{self, Beats};
use crate::report::nanoseconds;
use crate::server::Server;
use crate::wire::{self, Door};
use hdrhistogram::Histogram;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tools::frame::{self, Frame, TEXT};

/// Listeners whose frames are parsed; the others count theirs.
const LOOKED_AT: usize = 64;
/// Bursts requested before the first of them has arrived everywhere.
const WINDOW: u32 = 2;
/// Longest wait for a requested change.
const HEARD_WITHIN: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 64 << 10;
/// The beginning of a change's frame; a whole book in its place would mean that changes were skipped.
const CHANGE: &[u8] = b"{\"event_type\":\"price_change\"";

/// How changes are requested.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// This many in a burst, and the next burst when every listener has received the one before the last.
    Full { changes: u32, bursts: u32 },
    /// One at a time, at fixed intervals.
    Every { us: u64, changes: u32 },
}

/// What arrived.
pub struct Arrivals {
    /// Frames of all listeners together.
    pub frames: u64,
    pub seconds: f64,
    /// From the change's write to the end of its read, for some listeners.
    pub delay: Histogram<u64>,
}

impl Arrivals {
    /// Frames a second.
    pub fn rate(&self) -> f64 {
        self.frames as f64 / self.seconds
    }
}

pub struct Listeners {
    runtime: Runtime,
    sockets: Vec<Listener>,
}

struct Listener {
    stream: TcpStream,
    heard: Vec<u8>,
    is_looked_at: bool,
}

/// State that all listeners of a run share.
struct Progress {
    /// By burst: listeners that have not received all of it.
    waiting: Vec<usize>,
    /// Bursts that every listener has received.
    bursts: u32,
    /// Bursts that any listener has received.
    frames: u64,
    delay: Histogram<u64>,
}

impl Listeners {
    /// Opens sockets. With a subscription, each one sends it and receives the answer.
    pub fn open(door: &Door, count: usize, subscription: Option<&str>) -> io::Result<Listeners> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut sockets = Vec::with_capacity(count);
        for number in 0..count {
            let (mut stream, heard) = runtime.block_on(door.open())?;
            if let Some(text) = subscription {
                let mut out = Vec::new();
                frame::text(&mut out, |out| out.extend_from_slice(text.as_bytes()));
                runtime.block_on(stream.write_all(&out))?;
            }
            let is_looked_at = number % count.div_ceil(LOOKED_AT) == 0;
            let mut listener = Listener { stream, heard, is_looked_at };
            if subscription.is_some() {
                runtime.block_on(listener.text())?;
            }
            sockets.push(listener);
        }
        Ok(Listeners { runtime, sockets })
    }

    /// The text of the next frame of the first listener, while the others receive one too.
    pub fn sample(&mut self, server: &mut Server) -> io::Result<Vec<u8>> {
        server.tell(Beats::once(1));
        let mut first = None;
        for socket in &mut self.sockets {
            let text = self.runtime.block_on(socket.text())?;
            first.get_or_insert(text);
        }
        first.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Requests changes from the server, and receives all of them on every socket.
    pub fn hear(&mut self, server: &mut Server, pace: Pace) -> io::Result<Arrivals> {
        let (in_burst, bursts) = match pace {
            Pace::Full { changes, bursts } => (changes, bursts),
            Pace::Every { changes, .. } => (1, changes),
        };
        let everybody = self.sockets.len();
        let waiting = vec![everybody; bursts as usize];
        let progress = Rc::new(RefCell::new(Progress { waiting, bursts: 0, frames: 0, delay: nanoseconds() }));
        let bell = Rc::new(Notify::new());
        let begun = Instant::now();
        let tasks = LocalSet::new();
        let hearing: Vec<_> = std::mem::take(&mut self.sockets)
            .into_iter()
            .map(|mut socket| {
                let (progress, bell) = (progress.clone(), bell.clone());
                tasks.spawn_local(async move { socket.hear(in_burst, &progress, &bell).await.map(|()| socket) })
            })
            .collect();
        let sending = async {
            let mut sent = 0;
            if let Pace::Every { us, changes } = pace {
                server.tell(Beats { changes: 1, times: changes, every_us: us, whole: false });
                sent = bursts;
            }
            loop {
                let heard = progress.borrow().bursts;
                while sent < (heard + WINDOW).min(bursts) {
                    server.tell(Beats::once(in_burst));
                    sent += 1;
                }
                if heard == bursts {
                    return Instant::now();
                }
                bell.notified().await;
            }
        };
        let (ended, sockets) = self.runtime.block_on(tasks.run_until(async {
            let ended = tokio::time::timeout(HEARD_WITHIN, sending).await;
            let mut sockets = Vec::with_capacity(hearing.len());
            for socket in hearing {
                if ended.is_err() {
                    socket.abort();
                }
                sockets.push(socket.await.map_err(io::Error::other)??);
            }
            Ok::<_, io::Error>((ended?, sockets))
        }))?;
        self.sockets = sockets;
        let (frames, delay) = (progress.borrow().frames, progress.borrow().delay.clone());
        Ok(Arrivals { frames, seconds: (ended - begun).as_secs_f64(), delay })
    }
}

impl Listener {
    /// The next text.
    async fn text(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(Frame { first, payload, bytes }) = frame::read(&self.heard) {
                let text = (first == TEXT).then(|| payload.to_vec());
                self.heard.drain(..bytes);
                match text {
                    Some(text) => return Ok(text),
                    None => continue,
                }
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        self.heard.reserve(READ_BYTES);
        if self.stream.read_buf(&mut self.heard).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Receives every burst.
    async fn hear(&mut self, in_burst: u32, progress: &RefCell<Progress>, bell: &Notify) -> io::Result<()> {
        let (mut frames, total) = (0, progress.borrow().waiting.len() as u32 * in_burst);
        while frames < total {
            self.read().await?;
            let (heard, asked) = self.take(frames, in_burst, &mut progress.borrow_mut(), bell)?;
            frames = heard;
            if asked {
                self.stream.write_all(&wire::ANSWER).await?;
            }
        }
        Ok(())
    }

    /// Takes the complete frames of the received bytes, after `count` earlier ones; returns the new count, and whether
    /// the server sent a ping.
    fn take(
        &mut self,
        mut frames: u32,
        in_burst: u32,
        shared: &mut Progress,
        bell: &Notify,
    ) -> io::Result<(u32, bool)> {
        let (mut taken, mut asked) = (0, false);
        while let Some(Frame { first, payload, bytes }) = frame::read(&self.heard[taken..]) {
            taken += bytes;
            if first == frame::PING {
                asked = true;
                continue;
            }
            if first != TEXT || !payload.starts_with(CHANGE) {
                return Err(io::Error::other(String::from_utf8_lossy(payload).into_owned()));
            }
            if self.is_looked_at {
                let stamp = pulse::read_stamp(payload).ok_or_else(|| io::Error::other("a change of another level"))?;
                shared.delay.saturating_record(1_000 * pulse::since(stamp));
            }
            frames += 1;
            shared.frames += 1;
            if frames.is_multiple_of(in_burst) {
                let waiting = &mut shared.waiting[(frames / in_burst - 1) as usize];
                *waiting -= 1;
                if *waiting == 0 {
                    shared.bursts += 1;
                    bell.notify_one();
                }
            }
        }
        self.heard.drain(..taken);
        Ok((frames, asked))
    }
}

/// The client's frame that subscribes to the first token of the market.
pub fn subscription() -> String {
    let [token, _] = pulse::tokens();
    format!("{{\"type\":\"market\",\"assets_ids\":[\"{token}\"]}}")
}
