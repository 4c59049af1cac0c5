//! Bare servers that send the same texts to all their listeners ([`crate::reference`]).
//!
//! Our server writes all pending changes of a listener in one piece when it reaches that listener, so bursts in close
//! succession may leave together. These servers may do the same: each socket is written everything that is pending when
//! its turn comes.

use crate::pulse::{self, Beats};
use crate::reference::{Kind, shaken};
use fastwebsockets::{Frame, Payload, Role, WebSocket};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// Serves until it is killed. `template` is the text to send, with the time in it updated for each.
pub async fn serve(kind: Kind, listener: &TcpListener, template: &[u8]) -> io::Result<()> {
    let (sender, beats) = std::sync::mpsc::channel();
    let bell = Arc::new(Notify::new());
    let ring = bell.clone();
    pulse::listen(sender, move || ring.notify_one());
    let mut hall =
        Hall { beats, waiting: VecDeque::new(), sockets: Vec::new(), texts: Vec::new(), encoded: Vec::new() };
    loop {
        tokio::select! {
            biased;
            stream = shaken(listener) => {
                let socket = Socket::of(kind, stream?).await;
                hall.sockets.push((socket, 0));
            }
            () = bell.notified() => {}
        }
        while let Some(beats) = hall.next() {
            let begun = Instant::now();
            for time in 0..beats.times {
                if beats.every_us > 0 {
                    let due = begun + Duration::from_micros(beats.every_us * u64::from(time));
                    tokio::time::sleep_until(due.into()).await;
                }
                hall.add(beats.changes, template);
                hall.tell(template).await?;
            }
        }
    }
}

/// All listeners, and the texts that some of them have not received yet.
struct Hall {
    beats: Receiver<Beats>,
    /// Requested and not begun: a repeated burst waits for the one before.
    waiting: VecDeque<Beats>,
    /// Each with the number of texts that it has received.
    sockets: Vec<(Socket, usize)>,
    /// Texts of one length, each checked once to be UTF-8, however many listeners receive it: one library requires
    /// that.
    texts: Vec<Utf8Bytes>,
    encoded: Vec<u8>,
}

impl Hall {
    fn next(&mut self) -> Option<Beats> {
        self.waiting.pop_front().or_else(|| self.beats.try_recv().ok())
    }

    fn add(&mut self, changes: u32, template: &[u8]) {
        for _ in 0..changes {
            let text = stamped(template);
            self.encoded.extend_from_slice(edge::ws::frame::Frame::text(&text).bytes());
            self.texts.push(text.try_into().expect("the text is UTF-8"));
        }
    }

    /// Writes to each listener what it lacks, until none lacks anything. A burst requested meanwhile is added.
    async fn tell(&mut self, template: &[u8]) -> io::Result<()> {
        while self.sockets.iter().any(|(_, had)| *had < self.texts.len()) {
            for at in 0..self.sockets.len() {
                if self.waiting.is_empty()
                    && let Some(beats) = self.next()
                {
                    match beats.times {
                        1 => self.add(beats.changes, template),
                        _ => self.waiting.push_back(beats),
                    }
                }
                let Hall { sockets, texts, encoded, .. } = self;
                let (socket, had) = &mut sockets[at];
                if *had < texts.len() {
                    let frame_bytes = encoded.len() / texts.len();
                    socket.write(&texts[*had..], &encoded[*had * frame_bytes..]).await?;
                    *had = texts.len();
                }
            }
        }
        self.texts.clear();
        self.encoded.clear();
        self.sockets.iter_mut().for_each(|(_, had)| *had = 0);
        Ok(())
    }
}

/// One listener, and its way of writing.
enum Socket {
    /// Encoded frames in one write.
    Raw(TcpStream),
    /// Each frame by the library that our server reads with.
    Library(Box<WebSocket<TcpStream>>),
    /// All frames into its buffer, and the buffer in one write.
    #[cfg(feature = "peers")]
    Tungstenite(Box<crate::peers::tungstenite::Listener>),
}

impl Socket {
    async fn of(kind: Kind, stream: TcpStream) -> Socket {
        match kind {
            Kind::Library => Socket::Library(Box::new(WebSocket::after_handshake(stream, Role::Server))),
            #[cfg(feature = "peers")]
            Kind::Tungstenite => Socket::Tungstenite(Box::new(crate::peers::tungstenite::Listener::of(stream).await)),
            Kind::Coalesced => Socket::Raw(stream),
            Kind::Hyper | Kind::Echo => unreachable!("a server of answers does not broadcast"),
        }
    }

    async fn write(&mut self, texts: &[Utf8Bytes], encoded: &[u8]) -> io::Result<()> {
        match self {
            Socket::Raw(stream) => stream.write_all(encoded).await,
            Socket::Library(socket) => {
                for text in texts {
                    socket
                        .write_frame(Frame::text(Payload::Borrowed(text.as_bytes())))
                        .await
                        .map_err(io::Error::other)?;
                }
                Ok(())
            }
            #[cfg(feature = "peers")]
            Socket::Tungstenite(socket) => socket.write(texts).await,
        }
    }
}

/// The text with the current time in it.
fn stamped(template: &[u8]) -> Vec<u8> {
    let mut payload = template.to_vec();
    if let Some(place) = pulse::stamp_in(template) {
        let digits = pulse::stamp().0.to_string();
        let (whole, parts) = digits.split_at(digits.len() - 6);
        payload[place..place + digits.len() + 1].copy_from_slice(format!("{whole}.{parts}").as_bytes());
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use tokio::io::AsyncReadExt as _;
    use tools::frame;

    #[test]
    fn the_moment_takes_the_place_of_the_other() {
        let template = br#"{"price_changes":[{"price":"0.40","size":"1000.000001","side":"BUY"}]}"#;
        let payload = stamped(template);
        assert_eq!((payload.len(), &payload[..40]), (template.len(), &template[..40]));
        let stamp = pulse::read_stamp(&payload).expect("a size");
        assert!(pulse::since(stamp) < 1_000_000, "{stamp}");
        assert_ne!(payload, template);
        assert_eq!(pulse::read_stamp(b"an impossible size"), None);
    }

    /// For each way of writing: each text once on each socket, in order, including those requested meanwhile.
    #[test]
    fn every_listener_receives_each_text_once() {
        #[cfg(not(feature = "peers"))]
        let kinds = [Kind::Coalesced, Kind::Library];
        #[cfg(feature = "peers")]
        let kinds = [Kind::Coalesced, Kind::Library, Kind::Tungstenite];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        for kind in kinds {
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                let address = listener.local_addr().expect("bound");
                let (sender, beats) = channel();
                let (mut sockets, mut listeners) = (Vec::new(), Vec::new());
                for _ in 0..3 {
                    listeners.push(TcpStream::connect(address).await.expect("it listens"));
                    let (stream, _) = listener.accept().await.expect("it was connected");
                    sockets.push((Socket::of(kind, stream).await, 0));
                }
                let mut hall =
                    Hall { beats, waiting: VecDeque::new(), sockets, texts: Vec::new(), encoded: Vec::new() };
                for changes in [2, 3] {
                    sender.send(Beats::once(changes)).expect("it listens");
                }
                sender.send(Beats { times: 2, ..Beats::once(1) }).expect("it listens");
                let first = hall.next().expect("the burst was requested");
                hall.add(first.changes, b"text");
                hall.tell(b"text").await.expect("they listen");
                assert_eq!(hall.waiting.len(), 1, "the repeated burst has not begun");
                drop(hall);
                for mut listener in listeners {
                    let mut heard = Vec::new();
                    listener.read_to_end(&mut heard).await.expect("a socket");
                    let (mut texts, mut at) = (0, 0);
                    while let Some(frame) = frame::read(&heard[at..]) {
                        assert_eq!((frame.first, frame.payload), (frame::TEXT, &b"text"[..]), "{kind:?}");
                        (texts, at) = (texts + 1, at + frame.bytes);
                    }
                    assert_eq!((texts, at), (5, heard.len()), "{kind:?}");
                }
            });
        }
        println!("broadcasts: {} cases", 3 * kinds.len());
    }
}
