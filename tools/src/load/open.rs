//! Opening a connection: a stream with one answered request, and on the trade channel the handshake of the socket.

use super::lane::error_text;
use super::protocol::{Protocol, Received, Transport};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Timeout of opening a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer to the first request, and longest head of the answer to a handshake.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Opens a stream that is ready for operations, with the bytes already received; or returns why it cannot.
pub async fn open(address: SocketAddr, protocol: &Protocol, key: &str) -> Result<(TcpStream, Vec<u8>), String> {
    let opened = timeout(PATIENCE, async {
        let stream = TcpStream::connect(address).await.map_err(|error| error_text(&error))?;
        stream.set_nodelay(true).map_err(|error| error_text(&error))?;
        match protocol.transport {
            Transport::Rest => greet(stream, protocol).await,
            Transport::Ws => upgrade(stream, &protocol.authority, key).await,
        }
    });
    opened.await.unwrap_or_else(|_| Err("no connection in time".to_owned()))
}

/// Sends a cheap request that is not counted. A server keeps a connection open for a minute after an answer, and closes
/// one without a request within seconds: the first operation may be due much later than that.
async fn greet(mut stream: TcpStream, protocol: &Protocol) -> Result<(TcpStream, Vec<u8>), String> {
    let (mut out, mut received) = (Vec::new(), Vec::new());
    protocol.greet(&mut out);
    stream.write_all(&out).await.map_err(|error| error_text(&error))?;
    loop {
        match protocol.decode(&received) {
            Received::Answer(answer) if !answer.last => {
                let rest = received.split_off(answer.bytes);
                return Ok((stream, rest));
            }
            Received::Part if received.len() <= HEAD_BYTES_MAX => {}
            Received::Broken(why) => return Err(why.to_owned()),
            _ => return Err("no answer to the first request".to_owned()),
        }
        if stream.read_buf(&mut received).await.map_err(|error| error_text(&error))? == 0 {
            return Err("closed by the server before its first answer".to_owned());
        }
    }
}

async fn upgrade(mut stream: TcpStream, authority: &str, key: &str) -> Result<(TcpStream, Vec<u8>), String> {
    // The nonce protects against caches between the two; there are none, so it is constant.
    let head = format!(
        "GET /v1/ws/trade HTTP/1.1\r\nHost: {authority}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: bG9hZCBpcyBub3QgbHVjaw==\r\nX-API-Key: {key}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.map_err(|error| error_text(&error))?;
    let mut received = Vec::new();
    let end = loop {
        if let Some(at) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if received.len() > HEAD_BYTES_MAX
            || stream.read_buf(&mut received).await.map_err(|error| error_text(&error))? == 0
        {
            return Err("no answer to the handshake".to_owned());
        }
    };
    if received.starts_with(b"HTTP/1.1 101 ") {
        return Ok((stream, received.split_off(end)));
    }
    Err(refusal(&String::from_utf8_lossy(&received[..end])))
}

/// Describes the head of an answer other than 101.
fn refusal(head: &str) -> String {
    let mut reason = "handshake refused".to_owned();
    if let Some(status) = head.split(' ').nth(1) {
        write!(reason, " with {status}").expect("writing to a string succeeds");
    }
    let named =
        |line: &&str| line.split_once(':').is_some_and(|(name, _)| name.to_ascii_lowercase().ends_with("-code"));
    if let Some((_, code)) = head.lines().find(named).and_then(|line| line.split_once(':')) {
        write!(reason, " {}", code.trim()).expect("writing to a string succeeds");
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_handshake_names_status_and_code() {
        let cases = [
            ("HTTP/1.1 401 Unauthorized\r\nX-Svc-Code: INVALID_KEY\r\n\r\n", "handshake refused with 401 INVALID_KEY"),
            ("HTTP/1.1 503 Busy\r\nServer: a\r\n\r\n", "handshake refused with 503"),
            ("\r\n\r\n", "handshake refused"),
        ];
        for (head, expected) in cases {
            assert_eq!(refusal(head), expected);
        }
        println!("handshakes: {} cases", cases.len());
    }
}
