//! Opening a socket, as far as a load needs it.

use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tools::frame::PONG;

/// A client's pong to a ping of the server: masked, empty.
pub const ANSWER: [u8; 6] = [PONG, 0x80, 0, 0, 0, 0];
/// Longest answer to a handshake.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The address of a socket.
#[derive(Clone, Debug)]
pub struct Door {
    pub address: SocketAddr,
    pub path: &'static str,
    pub key: Option<String>,
    /// Socket buffer for a reader that does not read; `None` = the system's default.
    pub receive_buffer_bytes: Option<u32>,
}

impl Door {
    pub fn new(address: SocketAddr, path: &'static str) -> Door {
        Door { address, path, key: None, receive_buffer_bytes: None }
    }

    /// Opens a socket; returns the bytes after the handshake's answer, too.
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
