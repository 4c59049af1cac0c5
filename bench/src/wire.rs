//! The client's half of a WebSocket, as little of it as a load needs.

use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

pub const TEXT: u8 = 0x81;
pub const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
/// A server's answer to a ping of the server: masked, empty.
pub const ANSWER: [u8; 6] = [PONG, 0x80, 0, 0, 0, 0];
/// Longest answer to a handshake.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Where a socket is opened.
#[derive(Clone, Debug)]
pub struct Door {
    pub address: SocketAddr,
    pub path: &'static str,
    pub key: Option<String>,
    /// Bytes that the system keeps for a reader who does not read; `None` = as many as it likes.
    pub receive_buffer_bytes: Option<u32>,
}

impl Door {
    pub fn new(address: SocketAddr, path: &'static str) -> Door {
        Door { address, path, key: None, receive_buffer_bytes: None }
    }

    /// Opens a socket; gives what came behind the answer to the handshake too.
    pub async fn open(&self) -> io::Result<(TcpStream, Vec<u8>)> {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = self.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        let mut stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        let key = self.key.as_ref().map_or(String::new(), |key| format!("X-API-Key: {key}\r\n"));
        let path = self.path;
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{key}\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        let end = loop {
            if let Some(at) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut answer).await? == 0 || answer.len() > HEAD_BYTES_MAX {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        if !answer.starts_with(b"HTTP/1.1 101 ") {
            return Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned()));
        }
        Ok((stream, answer.split_off(end)))
    }
}

/// Writes a masked text. The mask is zero: the server has the same work with it, and we have none.
pub fn text(out: &mut Vec<u8>, payload: &[u8]) {
    out.push(TEXT);
    match payload.len() {
        0..126 => out.push(0x80 | payload.len() as u8),
        126..0x1_0000 => {
            out.push(0xfe);
            out.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        }
        _ => {
            out.push(0xff);
            out.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(payload);
}

/// The first frame of these bytes: its first byte and what it carries, and its length in all; `None` while it is not
/// whole.
pub fn frame(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let (head, length) = match *bytes.get(1)? {
        126 => (4, u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().expect("two bytes")))),
        127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().expect("eight bytes"))),
        short => (2, u64::from(short)),
    };
    let end = head + length as usize;
    Some((bytes[0], bytes.get(head..end)?, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_whole_when_its_length_says_so() {
        let mut cases = 0;
        for length in [0, 1, 125, 126, 300, 0xffff, 0x1_0000] {
            let payload = vec![b'x'; length];
            let mut masked = Vec::new();
            text(&mut masked, &payload);
            // A server's frame is the same without the mask.
            let head = masked.len() - length - 4;
            let mut bytes = masked[..head].to_vec();
            bytes[1] &= 0x7f;
            bytes.extend_from_slice(&payload);
            assert_eq!(frame(&bytes), Some((TEXT, &payload[..], bytes.len())));
            for cut in [0, 1, head, bytes.len() - 1] {
                assert!(cut == bytes.len() || frame(&bytes[..cut]).is_none() || length == 0, "{length} cut at {cut}");
                cases += 1;
            }
        }
        println!("frames: {cases} cases");
    }
}
