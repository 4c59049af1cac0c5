//! Checks of a peer's frames, before the frame library sees their bytes.
//!
//! The library alone accepts unmasked frames, lengths in more bytes than needed, long control frames and data frames
//! inside a fragmented message, and bounds only single frames. [`Inspector`] reads the headers in a byte stream, in
//! pieces of any size, and finds the first invalid one.

use super::close::Close;
use super::frame::CONTROL_BYTES_MAX;
use bytes::{Buf as _, Bytes};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest message of a peer, with all its fragments.
pub const MESSAGE_BYTES_MAX: u64 = 64 << 10;
/// Longest header of a peer's frame: two bytes, eight of length, four of mask.
const HEAD_BYTES_MAX: usize = 14;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;

/// Reads frame headers in a byte stream.
#[derive(Debug, Default)]
pub struct Inspector {
    head: [u8; HEAD_BYTES_MAX],
    head_len: usize,
    /// Bytes that are missing of the current frame.
    payload_left: u64,
    /// Inside a fragmented message: its length so far.
    message: Option<u64>,
}

impl Inspector {
    /// Checks the next bytes.
    ///
    /// # Errors
    /// How many of these bytes belong to valid frames, and the close code for the next frame. No further bytes may be
    /// passed.
    pub fn inspect(&mut self, bytes: &[u8]) -> Result<(), (usize, Close)> {
        let mut at = 0;
        while at < bytes.len() {
            if self.payload_left > 0 {
                let skipped = self.payload_left.min((bytes.len() - at) as u64);
                self.payload_left -= skipped;
                at += skipped as usize;
                continue;
            }
            self.head[self.head_len] = bytes[at];
            self.head_len += 1;
            if let Some(close) = self.fault() {
                // Earlier calls may have passed some bytes of this header on. The library then waits for the rest in
                // vain.
                return Err(((at + 1).saturating_sub(self.head_len), close));
            }
            at += 1;
            if self.head_len == self.head_bytes() {
                self.begin();
            }
        }
        Ok(())
    }

    /// Length of the current header, as far as it is known.
    fn head_bytes(&self) -> usize {
        match (self.head_len, self.head[1] & 0x7f) {
            (0 | 1, _) => 2,
            (_, 126) => 8,
            (_, 127) => HEAD_BYTES_MAX,
            _ => 6,
        }
    }

    /// Length of the payload, once it is known.
    fn length(&self) -> Option<u64> {
        let [_, short, rest @ ..] = &self.head;
        match (short & 0x7f, self.head_len) {
            (126, 4..) => Some(u64::from(u16::from_be_bytes([rest[0], rest[1]]))),
            (127, 10..) => Some(u64::from_be_bytes(rest[..8].try_into().expect("eight bytes"))),
            (126 | 127, _) | (_, 0 | 1) => None,
            (short, _) => Some(u64::from(short)),
        }
    }

    fn is_control(&self) -> bool {
        self.head[0] & 0x08 != 0
    }

    /// The fault of the header so far.
    fn fault(&self) -> Option<Close> {
        let (first, opcode) = (self.head[0], self.head[0] & 0x0f);
        let fin = first & 0x80 != 0;
        if self.head_len == 1 {
            return match opcode {
                _ if first & 0x70 != 0 => Some(Close::PROTOCOL),
                BINARY => Some(Close::BINARY),
                3..=7 | 11.. => Some(Close::PROTOCOL),
                8..=10 if !fin => Some(Close::PROTOCOL),
                CONTINUATION if self.message.is_none() => Some(Close::PROTOCOL),
                TEXT if self.message.is_some() => Some(Close::PROTOCOL),
                _ => None,
            };
        }
        let second = self.head[1];
        if self.head_len == 2 {
            let unmasked = second & 0x80 == 0;
            let long_control = self.is_control() && usize::from(second & 0x7f) > CONTROL_BYTES_MAX;
            return (unmasked || long_control).then_some(Close::PROTOCOL);
        }
        let length = self.length()?;
        let minimal = match second & 0x7f {
            126 => length > 125,
            127 => length > 0xffff && length >> 63 == 0,
            _ => true,
        };
        if !minimal {
            return Some(Close::PROTOCOL);
        }
        let before = self.message.unwrap_or(0);
        (!self.is_control() && before.saturating_add(length) > MESSAGE_BYTES_MAX).then_some(Close::TOO_LONG)
    }

    /// Called when the header is complete: the payload begins.
    fn begin(&mut self) {
        let length = self.length().expect("the header is whole");
        let fin = self.head[0] & 0x80 != 0;
        if !self.is_control() {
            self.message = if fin { None } else { Some(self.message.unwrap_or(0) + length) };
        }
        self.payload_left = length;
        self.head_len = 0;
    }
}

/// A byte stream that ends before the first invalid frame.
pub struct Inspected<R> {
    /// Bytes that arrived together with the upgrade request.
    early: Bytes,
    inner: R,
    inspector: Inspector,
    fault: Option<Close>,
}

impl<R> Inspected<R> {
    pub fn new(early: Bytes, inner: R) -> Inspected<R> {
        Inspected { early, inner, inspector: Inspector::default(), fault: None }
    }

    /// Why the stream ended before the peer ended it.
    pub fn fault(&self) -> Option<Close> {
        self.fault
    }

    /// The inner stream.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Inspected<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.fault.is_some() {
            return Poll::Ready(Ok(()));
        }
        let before = into.filled().len();
        if this.early.is_empty() {
            ready!(Pin::new(&mut this.inner).poll_read(context, into))?;
        } else {
            let count = this.early.len().min(into.remaining());
            into.put_slice(&this.early[..count]);
            this.early.advance(count);
        }
        if let Err((sound, close)) = this.inspector.inspect(&into.filled()[before..]) {
            this.fault = Some(close);
            into.set_filled(before + sound);
        }
        Poll::Ready(Ok(()))
    }
}

/// The frame library requires a writer. Nothing is written this way: frames leave through the outbox.
impl<R: Unpin> AsyncWrite for Inspected<R> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked frame with a zero mask.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![first];
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
        out
    }

    /// The verdict on a stream, which must not depend on the size of its pieces.
    fn verdict_of(bytes: &[u8]) -> Result<(), (usize, Close)> {
        let whole = Inspector::default().inspect(bytes);
        for cut in 1..8 {
            let mut inspector = Inspector::default();
            let mut passed = 0;
            let mut pieces = Ok(());
            for piece in bytes.chunks(cut) {
                match inspector.inspect(piece) {
                    Ok(()) => passed += piece.len(),
                    Err((sound, close)) => {
                        pieces = Err((passed + sound, close));
                        break;
                    }
                }
            }
            match (whole, pieces) {
                (Ok(()), Ok(())) => {}
                // A header that arrived in pieces was partly passed on.
                (Err((all, one)), Err((some, other))) => {
                    assert!(one == other && some >= all && some < all + HEAD_BYTES_MAX, "{cut}: {whole:?} {pieces:?}");
                }
                _ => panic!("cut by {cut}: {whole:?}, {pieces:?}"),
            }
        }
        whole
    }

    #[test]
    fn only_sound_frames_pass() {
        let big = vec![b'x'; MESSAGE_BYTES_MAX as usize];
        let fits = [frame(0x01, &big[..40_000]), frame(0x89, b"p"), frame(0x80, &big[..25_536])].concat();
        let many = [frame(0x01, &big[..40_000]), frame(0x00, &big[..25_000]), frame(0x80, &big[..537])].concat();
        let rows: Vec<(&str, Vec<u8>, Result<(), Close>)> = vec![
            ("nothing", vec![], Ok(())),
            ("text", frame(0x81, b"hello"), Ok(())),
            ("empty text", frame(0x81, b""), Ok(())),
            ("125 bytes", frame(0x81, &big[..125]), Ok(())),
            ("126 bytes", frame(0x81, &big[..126]), Ok(())),
            ("the longest message", frame(0x81, &big), Ok(())),
            ("one byte more", frame(0x81, &[&big[..], b"x"].concat()), Err(Close::TOO_LONG)),
            ("fragments with a ping between", fits, Ok(())),
            ("fragments that are too long together", many, Err(Close::TOO_LONG)),
            ("ping, pong, close", [frame(0x89, b"a"), frame(0x8a, b""), frame(0x88, b"")].concat(), Ok(())),
            ("a ping of 125 bytes", frame(0x89, &big[..125]), Ok(())),
            ("a ping of 126 bytes", frame(0x89, &big[..126]), Err(Close::PROTOCOL)),
            ("a pong of 126 bytes", frame(0x8a, &big[..126]), Err(Close::PROTOCOL)),
            ("a close of 126 bytes", frame(0x88, &big[..126]), Err(Close::PROTOCOL)),
            ("a fragmented ping", frame(0x09, b""), Err(Close::PROTOCOL)),
            ("a fragmented close", frame(0x08, b""), Err(Close::PROTOCOL)),
            ("binary", frame(0x82, b"x"), Err(Close::BINARY)),
            ("unmasked text", vec![0x81, 1, b'x'], Err(Close::PROTOCOL)),
            ("unmasked ping", vec![0x89, 0], Err(Close::PROTOCOL)),
            ("RSV1", frame(0xc1, b"x"), Err(Close::PROTOCOL)),
            ("RSV2", frame(0xa1, b"x"), Err(Close::PROTOCOL)),
            ("RSV3", frame(0x91, b"x"), Err(Close::PROTOCOL)),
            ("opcode 3", frame(0x83, b""), Err(Close::PROTOCOL)),
            ("opcode 7", frame(0x87, b""), Err(Close::PROTOCOL)),
            ("opcode 11", frame(0x8b, b""), Err(Close::PROTOCOL)),
            ("opcode 15", frame(0x8f, b""), Err(Close::PROTOCOL)),
            ("a continuation of nothing", frame(0x80, b"x"), Err(Close::PROTOCOL)),
            ("text inside text", [frame(0x01, b"a"), frame(0x81, b"b")].concat(), Err(Close::PROTOCOL)),
            ("5 in two bytes", vec![0x81, 0xfe, 0, 5, 0, 0, 0, 0], Err(Close::PROTOCOL)),
            ("126 in eight bytes", vec![0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 126], Err(Close::PROTOCOL)),
            ("the highest bit of a length", vec![0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1], Err(Close::PROTOCOL)),
            ("the largest length", vec![0x81, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255], Err(Close::TOO_LONG)),
        ];
        for (what, bytes, expected) in &rows {
            assert_eq!(verdict_of(bytes).map_err(|(_, close)| close), *expected, "{what}");
            // The same after a valid frame, which still passes.
            let first = frame(0x81, b"first");
            let verdict = verdict_of(&[first.clone(), bytes.clone()].concat());
            assert!(verdict.map_err(|(_, close)| close) == *expected, "{what}");
            if let Err((sound, _)) = verdict {
                assert!(sound >= first.len(), "{what}: {sound}");
            }
        }
        println!("frame headers: {} cases, each cut in 8 ways", rows.len() * 2);
    }
}
