//! Reads complete messages of a peer. The frame library parses the frames that pass [`Inspected`]; fragments are joined
//! and text is checked to be UTF-8 here.

use super::close::Close;
use super::policy::{Inspected, MESSAGE_BYTES_MAX};
use bytes::{Bytes, BytesMut};
use fastwebsockets::{OpCode, Payload, Role, WebSocket, WebSocketError};
use tokio::io::AsyncRead;

/// A message of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// UTF-8.
    Text(Bytes),
    /// Part of a text message, with this many bytes. More follow.
    Fragment(usize),
    Ping(Bytes),
    Pong,
    Close,
}

impl Message {
    /// Payload bytes that were read for it.
    pub fn bytes(&self) -> usize {
        match self {
            Message::Text(bytes) | Message::Ping(bytes) => bytes.len(),
            Message::Fragment(bytes) => *bytes,
            Message::Pong | Message::Close => 0,
        }
    }
}

/// Why there is no next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer closed the connection without a close frame.
    Gone,
    /// The peer sent a frame that is answered with this close.
    Refused(Close),
}

/// The reading half of a socket.
pub struct Reader<R> {
    /// `None` when the stream has ended.
    frames: Option<WebSocket<Inspected<R>>>,
    rest: Option<R>,
    /// Fragments of the current message.
    begun: BytesMut,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads `early` first: bytes that arrived together with the handshake.
    pub fn new(early: Bytes, inner: R) -> Reader<R> {
        let mut frames = WebSocket::after_handshake(Inspected::new(early, inner), Role::Server);
        // Answers leave through the outbox, in order.
        frames.set_auto_close(false);
        frames.set_auto_pong(false);
        // The library refuses a message that is as long as its bound.
        frames.set_max_message_size(MESSAGE_BYTES_MAX as usize + 1);
        Reader { frames: Some(frames), rest: None, begun: BytesMut::new() }
    }

    /// The next message, fragment or control frame. Not cancel safe: a dropped call loses bytes.
    ///
    /// # Errors
    /// [`End`], also in all later calls.
    pub async fn next(&mut self) -> Result<Message, End> {
        let Some(frames) = &mut self.frames else { return Err(End::Gone) };
        let frame = match frames.read_frame().await {
            Ok(frame) => frame,
            Err(error) => return Err(self.end(&error)),
        };
        let (opcode, fin, payload) = (frame.opcode, frame.fin, bytes_of(frame.payload));
        match opcode {
            OpCode::Ping => Ok(Message::Ping(payload)),
            OpCode::Pong => Ok(Message::Pong),
            OpCode::Close => closing(&payload),
            OpCode::Text if fin => text(payload),
            OpCode::Text | OpCode::Continuation => {
                self.begun.extend_from_slice(&payload);
                if fin { text(self.begun.split().freeze()) } else { Ok(Message::Fragment(payload.len())) }
            }
            OpCode::Binary => Err(End::Refused(Close::BINARY)),
        }
    }

    /// The inner stream, so that the rest can be read and dropped. No more frames are read.
    pub fn into_rest(mut self) -> Option<R> {
        self.frames.take().map(|frames| frames.into_inner().into_inner()).or(self.rest)
    }

    fn end(&mut self, error: &WebSocketError) -> End {
        let Some(inspected) = self.frames.take().map(WebSocket::into_inner) else { return End::Gone };
        let fault = inspected.fault();
        self.rest = Some(inspected.into_inner());
        match (fault, error) {
            (Some(close), _) => End::Refused(close),
            (None, WebSocketError::UnexpectedEOF | WebSocketError::IoError(_)) => End::Gone,
            (None, WebSocketError::InvalidUTF8) => End::Refused(Close::NOT_UTF8),
            (None, WebSocketError::FrameTooLarge) => End::Refused(Close::TOO_LONG),
            (None, _) => End::Refused(Close::PROTOCOL),
        }
    }
}

fn bytes_of(payload: Payload<'_>) -> Bytes {
    match payload {
        Payload::Bytes(bytes) => bytes.freeze(),
        other => Bytes::from(Vec::from(other)),
    }
}

fn text(payload: Bytes) -> Result<Message, End> {
    if std::str::from_utf8(&payload).is_ok() { Ok(Message::Text(payload)) } else { Err(End::Refused(Close::NOT_UTF8)) }
}

/// Checks a close frame: empty, or an allowed code with a reason in UTF-8.
fn closing(payload: &[u8]) -> Result<Message, End> {
    match payload {
        [] => Ok(Message::Close),
        [_] => Err(End::Refused(Close::PROTOCOL)),
        [high, low, reason @ ..] => {
            if !Close::may_be_sent(u16::from_be_bytes([*high, *low])) {
                Err(End::Refused(Close::PROTOCOL))
            } else if std::str::from_utf8(reason).is_err() {
                Err(End::Refused(Close::NOT_UTF8))
            } else {
                Ok(Message::Close)
            }
        }
    }
}
