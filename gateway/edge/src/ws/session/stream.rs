//! The two halves of a socket's stream: the writing half, which its task and the hub share, and the reading half, as the
//! bot of a back-test needs it, and after the close frame.

use host::moments::Line;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Bytes that are read from a peer after the close frame.
const LINGER_BYTES_MAX: usize = 8 << 20;

/// The writing half for the socket's task. The hub may write between two of its writes.
pub(super) struct SharedStream<'a> {
    pub(super) half: &'a RefCell<Option<OwnedWriteHalf>>,
    /// The connection, in a back-test with a bot.
    pub(super) line: Option<&'a Line>,
}

impl SharedStream<'_> {
    fn with<T>(&self, step: impl FnOnce(Pin<&mut OwnedWriteHalf>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut *self.half.borrow_mut() {
            Some(stream) => step(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let (Some(line), Poll::Ready(Ok(_))) = (self.line, &written) {
            line.has_sent(true);
        }
        written
    }
}

impl AsyncWrite for SharedStream<'_> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.noted(self.with(|stream| stream.poll_write(context, bytes)))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.noted(self.with(|stream| stream.poll_write_vectored(context, pieces)))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_shutdown(context))
    }
}

/// The reading half. In a back-test, messages are read between two moments of the clock, and are open until the next
/// read finds nothing.
pub(super) struct ReadHalf {
    pub(super) stream: OwnedReadHalf,
    pub(super) line: Option<Rc<Line>>,
}

impl AsyncRead for ReadHalf {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.line.as_ref().is_some_and(|line| !line.enter(context)) {
            return Poll::Pending;
        }
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        match &self.line {
            Some(line) if read.is_pending() => line.leave(),
            Some(line) => line.has_read(),
            None => {}
        }
        read
    }
}

impl Drop for ReadHalf {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.leave();
        }
    }
}

/// Reads and drops what the peer still sends. Closing a stream with unread bytes makes the kernel reset the connection,
/// and the peer may never see the last frames.
pub(super) async fn read_and_drop(mut stream: ReadHalf) {
    let mut scratch = [0u8; 4_096];
    let mut left = LINGER_BYTES_MAX;
    while let Ok(count @ 1..) = stream.read(&mut scratch).await {
        left = left.saturating_sub(count);
        if left == 0 {
            return;
        }
    }
}
