//! A receiver of webhooks on loopback: it records every request, and answers as the test says, also wrongly.

use crate::eventually;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// How a receiver answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    Status(u16),
    /// A redirect to this address.
    Redirect(String),
    /// No answer, until the behaviour is another one.
    Stall,
    /// The connection ends before an answer.
    Cut,
    /// The head of an answer, and then the end of the connection.
    CutInBody,
    /// The head of an answer, and then nothing until the behaviour is another one.
    StallInBody,
    /// Not HTTP.
    Garbage,
    /// 200, and then a body of this many bytes.
    Large(usize),
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Received {
    /// The request line.
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }
}

/// The receiver; it ends with the process.
pub struct Receiver {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

struct State {
    behaviour: Behaviour,
    received: Vec<Received>,
    connections: usize,
    /// Bytes of answers that could be sent.
    sent: usize,
}

impl Receiver {
    pub fn start(behaviour: Behaviour) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound");
        let state = State { behaviour, received: Vec::new(), connections: 0, sent: 0 };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                shared.0.lock().unwrap().connections += 1;
                // A client that leaves early is what some tests are about.
                std::thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Receiver { address, state }
    }

    /// The address of a path on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn set(&self, behaviour: Behaviour) {
        self.state.0.lock().unwrap().behaviour = behaviour;
        self.state.1.notify_all();
    }

    pub fn received(&self) -> Vec<Received> {
        self.state.0.lock().unwrap().received.clone()
    }

    pub fn connections(&self) -> usize {
        self.state.0.lock().unwrap().connections
    }

    pub fn sent(&self) -> usize {
        self.state.0.lock().unwrap().sent
    }

    /// Waits until this many requests have come.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Received> {
        eventually("requests of the server", || Some(self.received()).filter(|received| received.len() >= count))
    }

    /// Waits for a request of this type of event; returns its payload.
    #[track_caller]
    pub fn wait_for_event(&self, event: &str) -> Value {
        eventually(event, || self.received().iter().map(Received::json).find(|payload| payload["event_type"] == event))
    }
}

fn serve(mut stream: TcpStream, shared: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |line: &String| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<_> = lines.iter().skip(1).filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, text)| text.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let line = lines.first().cloned().unwrap_or_default();
    let mut state = shared.0.lock().unwrap();
    state.received.push(Received { line, headers, body });
    let behaviour = state.behaviour.clone();
    if behaviour == Behaviour::Stall {
        while state.behaviour == Behaviour::Stall {
            state = shared.1.wait(state).unwrap();
        }
        return Ok(());
    }
    drop(state);
    match behaviour {
        Behaviour::Status(status) => {
            write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        }
        Behaviour::Redirect(to) => {
            write!(stream, "HTTP/1.1 307 X\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
        Behaviour::Cut | Behaviour::Stall => Ok(()),
        Behaviour::CutInBody => write!(stream, "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf"),
        Behaviour::StallInBody => {
            write!(stream, "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf")?;
            let mut state = shared.0.lock().unwrap();
            while state.behaviour == Behaviour::StallInBody {
                state = shared.1.wait(state).unwrap();
            }
            Ok(())
        }
        Behaviour::Garbage => write!(stream, "no answer of HTTP\r\n\r\n"),
        Behaviour::Large(bytes) => {
            write!(stream, "HTTP/1.1 200 X\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n")?;
            let piece = [b'x'; 16 << 10];
            let mut left = bytes;
            while left > 0 {
                let count = stream.write(&piece[..left.min(piece.len())])?;
                left -= count;
                shared.0.lock().unwrap().sent += count;
            }
            Ok(())
        }
    }
}
