//! The two halves of a socket's stream: the writing half, which its task and the hub share, and the reading half after
//! the close frame.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt as _, AsyncWrite};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Bytes that are read from a peer after the close frame.
const LINGER_BYTES_MAX: usize = 8 << 20;

/// The writing half for the socket's task. The hub may write between two of its writes.
pub(super) struct SharedStream<'a>(pub(super) &'a RefCell<Option<OwnedWriteHalf>>);

impl SharedStream<'_> {
    fn with<T>(&self, step: impl FnOnce(Pin<&mut OwnedWriteHalf>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut *self.0.borrow_mut() {
            Some(stream) => step(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncWrite for SharedStream<'_> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.poll_write_vectored(context, pieces))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_shutdown(context))
    }
}

/// Reads and drops what the peer still sends. Closing a stream with unread bytes makes the kernel reset the connection,
/// and the peer may never see the last frames.
pub(super) async fn read_and_drop(mut stream: OwnedReadHalf) {
    let mut scratch = [0u8; 4_096];
    let mut left = LINGER_BYTES_MAX;
    while let Ok(count @ 1..) = stream.read(&mut scratch).await {
        left = left.saturating_sub(count);
        if left == 0 {
            return;
        }
    }
}
