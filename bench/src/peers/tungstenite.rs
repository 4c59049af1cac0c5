//! tungstenite, through tokio: frames are fed into its buffer, and one flush writes them.

use futures::SinkExt as _;
use std::io;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// Its name in rows.
pub const NAME: &str = "tungstenite's feed and flush";

/// One listener.
pub struct Listener(WebSocketStream<TcpStream>);

impl Listener {
    /// After the handshake.
    pub async fn of(stream: TcpStream) -> Listener {
        Listener(WebSocketStream::from_raw_socket(stream, Role::Server, None).await)
    }

    /// The texts are shared, and neither inspected again nor copied before they are in the buffer.
    pub async fn write(&mut self, texts: &[Utf8Bytes]) -> io::Result<()> {
        for text in texts {
            self.0.feed(Message::Text(text.clone())).await.map_err(io::Error::other)?;
        }
        self.0.flush().await.map_err(io::Error::other)
    }
}
