//! A connection's socket: tells the head deadline what arrives, gives up on a peer that does not read, and closes so
//! that the last answer is read.
//!
//! Closing a socket with unread bytes makes the kernel reset the connection, and the peer may never see the answer that
//! told it to stop. So a peer that is still sending is listened to for a moment after the last byte to it.

use super::deadline::HeadDeadline;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::ready;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// How long, and for how many bytes, a peer is listened to that was told to stop.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_BYTES_MAX: usize = 8 << 20;

/// Set when an answer has ended the connection before the request was read whole.
pub(super) type Cut = Arc<AtomicBool>;

pub(super) struct Socket {
    stream: TokioIo<TcpStream>,
    head: HeadDeadline,
    write_timeout: Duration,
    cut: Cut,
    /// Runs while the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    closing: Option<Closing>,
}

/// After the last byte to the peer.
struct Closing {
    heard_bytes: usize,
    until: Pin<Box<Sleep>>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, head: HeadDeadline, cut: Cut, write_timeout: Duration) -> Socket {
        Socket { stream: TokioIo::new(stream), head, write_timeout, cut, stalled: None, closing: None }
    }

    /// Reads away what a peer sends that was told to stop, until it stops, or it has been long enough.
    fn listen_out(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let cut = self.cut.load(Relaxed);
        let Some(closing) = &mut self.closing else { return Poll::Ready(()) };
        let mut scratch = [std::mem::MaybeUninit::uninit(); 16 * 1_024];
        loop {
            let mut into = ReadBuf::uninit(&mut scratch);
            match Pin::new(self.stream.inner_mut()).poll_read(context, &mut into) {
                Poll::Ready(Ok(())) if !into.filled().is_empty() && closing.heard_bytes < LINGER_BYTES_MAX => {
                    closing.heard_bytes += into.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending if cut || closing.heard_bytes > 0 => return closing.until.as_mut().poll(context),
                Poll::Pending => return Poll::Ready(()),
            }
        }
    }

    /// The outcome of a write, or an error when the peer has taken nothing for too long.
    fn bounded<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.write_timeout)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Read for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if read.is_ready() {
            self.head.heard();
        }
        read
    }
}

impl Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.bounded(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(self.stream.inner_mut()).poll_shutdown(context))?;
            self.closing = Some(Closing { heard_bytes: 0, until: Box::pin(tokio::time::sleep(LINGER)) });
        }
        self.listen_out(context).map(Ok)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.bounded(context, written)
    }
}
