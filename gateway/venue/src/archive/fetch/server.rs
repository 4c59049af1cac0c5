//! A server of files on this machine, which does what a test says.

use parking_lot::Mutex;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
}

/// What is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Reply {
    /// Status line and headers, without the length.
    pub(super) head: String,
    /// `None`: no length is stated.
    pub(super) length: Option<u64>,
    pub(super) body: Vec<u8>,
    /// One byte at a time, after such a pause; in the end nothing more comes, and the connection stays.
    pub(super) drip: Option<Duration>,
}

/// The requests so far.
pub(super) struct FileServer {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// The first byte that is asked for.
    pub(super) fn from(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

impl Reply {
    pub(super) fn status(status: &str) -> Reply {
        Reply { head: format!("HTTP/1.1 {status}"), length: Some(0), ..Reply::default() }
    }

    /// A whole file.
    pub(super) fn whole(body: &[u8]) -> Reply {
        Reply { length: Some(body.len() as u64), body: body.to_vec(), ..Reply::status("200 OK") }
    }

    /// A file from a byte on.
    pub(super) fn rest(body: &[u8], from: usize) -> Reply {
        let reply = Reply { body: body[from..].to_vec(), ..Reply::status("206 Partial Content") };
        let (last, all) = (body.len() - 1, body.len());
        Reply { length: Some((all - from) as u64), ..reply }.with(&format!("Content-Range: bytes {from}-{last}/{all}"))
    }

    pub(super) fn with(mut self, header: &str) -> Reply {
        self.head += &format!("\r\n{header}");
        self
    }

    /// The length stays as stated, but the connection ends after this many bytes.
    pub(super) fn cut_after(mut self, bytes: usize) -> Reply {
        self.body.truncate(bytes);
        self
    }
}

impl FileServer {
    /// Starts; `reply` gets each request and how many came before it. It runs until the test's process ends.
    pub(super) fn start(reply: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> FileServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (asked, reply) = (Arc::new(Mutex::new(Vec::new())), Arc::new(reply));
        let server = FileServer { address, asked: asked.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (asked, reply) = (asked.clone(), reply.clone());
                // A client that goes away in the middle is part of the tests.
                std::thread::spawn(move || drop(serve(stream, &asked, &*reply)));
            }
        });
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/v2", self.address)
    }

    /// All requests so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }

    /// Requests of files, without those of the digests.
    pub(super) fn asked_for_files(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.path.ends_with(".parquet")).collect()
    }
}

/// One request; the connection ends after it.
fn serve(
    mut stream: TcpStream,
    asked: &Mutex<Vec<Asked>>,
    reply: &dyn Fn(&Asked, usize) -> Reply,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    for line in lines.by_ref() {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let of = Asked { method, path, headers };
    let number = {
        let mut asked = asked.lock();
        asked.push(of.clone());
        asked.len() - 1
    };
    let Reply { head, length, body, drip } = reply(&of, number);
    write!(stream, "{head}\r\nConnection: close\r\n")?;
    if let Some(length) = length {
        write!(stream, "Content-Length: {length}\r\n")?;
    }
    stream.write_all(b"\r\n")?;
    match drip {
        None => stream.write_all(&body),
        Some(pause) => {
            for byte in body {
                stream.write_all(&[byte])?;
                std::thread::sleep(pause);
            }
            // Until the client goes away.
            lines.next();
            Ok(())
        }
    }
}
