//! A connection's socket as hyper sees it.
//!
//! - Responses are gathered in a buffer. It is written when the connection has nothing more to do, in one write,
//!   together with those of other connections ([`super::write_batch`]). So pipelined requests share writes, and no
//!   response waits for input that has not arrived. (hyper's own `pipeline_flush` holds responses back while input is
//!   left, and loses them when that input is malformed.)
//! - A peer that does not read is disconnected after a time.
//! - hyper reads only the bytes that it is granted: one request at a time, or everything from some point on. The own
//!   reader ([`super::fast_path`]) reads the others.
//! - hyper's own response to a head that it cannot read is replaced by one with the headers of every other response.
//! - Closing a socket with unread bytes makes the kernel reset the connection, and the peer may never see the last
//!   response. So the socket keeps reading for a moment after the last byte to a peer that is still sending.

use super::deadline::HeadDeadline;
use crate::app::App;
use crate::http::{buffer, response_head};
use hyper::StatusCode;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Gathered bytes that are written even if the connection has more to do. Larger pieces are not copied.
const GATHER_BYTES_MAX: usize = 64 * 1_024;
/// How long, and how many bytes, the socket reads after the last response.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_BYTES_MAX: usize = 8 << 20;

/// A connection's socket. hyper and the driver of the connection have clones of it.
#[derive(Clone)]
pub(super) struct Socket(Rc<Shared>);

struct Shared {
    wire: RefCell<Wire>,
    /// Whether a response ended the connection before the request was read completely.
    cut: Cell<bool>,
    /// Whether a batch could not write the gathered bytes.
    is_unsent: Cell<bool>,
}

/// A grant without a bound.
const ALL: u64 = u64::MAX;

struct Wire {
    stream: TokioIo<TcpStream>,
    head: HeadDeadline,
    write_timeout: Duration,
    /// Bytes read and not consumed yet, from index `taken` on.
    incoming: Vec<u8>,
    taken: usize,
    /// Bytes that hyper may still read.
    granted: u64,
    /// Whether hyper has read everything that it was granted, and waits for a head.
    rests: bool,
    /// Headers for the response to a head that hyper cannot read.
    unread: Option<Arc<App>>,
    /// Whether hyper has read a head since its last grant.
    has_head: bool,
    /// Bytes not written yet, from index `written` on.
    gathered: Vec<u8>,
    written: usize,
    /// Runs while the peer reads nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    closing: Option<Closing>,
    /// Whether the response has no end.
    streams: bool,
    /// Whether bytes were written since [`Socket::take_sent`].
    has_sent: bool,
}

/// State after the last byte to the peer.
struct Closing {
    read_bytes: usize,
    until: Pin<Box<Sleep>>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, head: HeadDeadline, write_timeout: Duration) -> Socket {
        let wire = Wire {
            stream: TokioIo::new(stream),
            head,
            write_timeout,
            incoming: Vec::new(),
            taken: 0,
            granted: 0,
            rests: false,
            unread: None,
            has_head: false,
            gathered: Vec::new(),
            written: 0,
            stalled: None,
            closing: None,
            streams: false,
            has_sent: false,
        };
        Socket(Rc::new(Shared { wire: RefCell::new(wire), cut: Cell::new(false), is_unsent: Cell::new(false) }))
    }

    /// Sets the headers of the response to a head that hyper cannot read.
    pub(super) fn answers_unread(&self, app: Arc<App>) {
        self.0.wire.borrow_mut().unread = Some(app);
    }

    /// Records that hyper has read the head of its grant and waits for the response.
    pub(super) fn head_is_read(&self) {
        self.0.wire.borrow_mut().has_head = true;
    }

    /// Records that the response ends the connection, even if the request was not read completely.
    pub(super) fn cut(&self) {
        self.0.cut.set(true);
    }

    /// The stream, and the bytes read and not consumed, for the protocol after an upgrade. `None` unless this is the
    /// last clone. All responses were written before.
    pub(super) fn into_stream(self) -> Option<(TcpStream, Vec<u8>)> {
        let mut wire = Rc::into_inner(self.0)?.wire.into_inner();
        wire.incoming.drain(..wire.taken);
        Some((wire.stream.into_inner(), wire.incoming))
    }

    /// Lets hyper read this many more bytes.
    pub(super) fn grant(&self, bytes: u64) {
        let wire = &mut *self.0.wire.borrow_mut();
        (wire.granted, wire.rests, wire.has_head) = (wire.granted.saturating_add(bytes), false, false);
    }

    /// Lets hyper read everything from now on.
    pub(super) fn grant_all(&self) {
        self.grant(ALL);
    }

    /// Whether hyper has read everything that it was granted and waits for a head.
    pub(super) fn rests(&self) -> bool {
        self.0.wire.borrow().rests
    }

    /// Whether the gathered bytes must be written before the next response is made.
    pub(super) fn is_full(&self) -> bool {
        self.0.wire.borrow().gathered.len() >= GATHER_BYTES_MAX
    }

    /// Appends a response to the gathered bytes.
    pub(super) fn gather<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut gathered = std::mem::take(&mut self.0.wire.borrow_mut().gathered);
        if gathered.capacity() == 0 {
            gathered = buffer::take();
        }
        let written = write(&mut gathered);
        self.0.wire.borrow_mut().gathered = gathered;
        written
    }

    /// Moves the kept bytes into `room`, and returns their count.
    pub(super) fn take_incoming(&self, room: &mut [u8]) -> usize {
        let wire = &mut *self.0.wire.borrow_mut();
        let kept = &wire.incoming[wire.taken..];
        let count = kept.len();
        room[..count].copy_from_slice(kept);
        (wire.incoming, wire.taken) = (Vec::new(), 0);
        count
    }

    /// Keeps bytes that were read and not consumed.
    pub(super) fn keep_incoming(&self, bytes: &[u8]) {
        let wire = &mut *self.0.wire.borrow_mut();
        (wire.incoming, wire.taken) = (bytes.to_vec(), 0);
    }

    /// Drops the first `count` of the kept bytes.
    pub(super) fn skip_incoming(&self, count: u64) {
        self.0.wire.borrow_mut().taken += count as usize;
    }

    /// Reads available bytes and returns their count; 0 is the end of the stream.
    pub(super) fn poll_fill(&self, context: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let wire = &mut *self.0.wire.borrow_mut();
        let mut into = ReadBuf::new(room);
        ready!(wire.stream().poll_read(context, &mut into))?;
        Poll::Ready(Ok(into.filled().len()))
    }

    /// Marks the response as one without an end. A peer that reads nothing is then disconnected after `timeout`, if not
    /// sooner, and one that closed its sending half counts as gone.
    pub(super) fn stream(&self, timeout: Duration) {
        let wire = &mut *self.0.wire.borrow_mut();
        wire.write_timeout = wire.write_timeout.min(timeout);
        wire.streams = true;
    }

    /// Whether the peer of a stream is gone. hyper does not read during a response, so it cannot see this.
    pub(super) fn is_gone(&self, context: &mut Context<'_>) -> bool {
        let wire = &mut *self.0.wire.borrow_mut();
        let mut byte = [0];
        wire.streams
            && match wire.stream().poll_peek(context, &mut ReadBuf::new(&mut byte)) {
                Poll::Ready(Ok(count)) => count == 0,
                Poll::Ready(Err(_)) => true,
                Poll::Pending => false,
            }
    }

    /// Whether nothing of a request is left to read, to answer, or to write. A stream is not a request in progress.
    pub(super) fn is_idle(&self) -> bool {
        let wire = self.0.wire.borrow();
        wire.taken == wire.incoming.len() && wire.gathered.is_empty() && (wire.rests || wire.streams)
    }

    /// Whether bytes were written since the last call, and whether they belong to a stream.
    pub(super) fn take_sent(&self) -> Option<bool> {
        let wire = &mut *self.0.wire.borrow_mut();
        std::mem::take(&mut wire.has_sent).then_some(wire.streams)
    }

    /// Whether there are gathered bytes that a batch may write.
    pub(super) fn may_be_batched(&self) -> bool {
        !self.0.is_unsent.get() && !self.0.wire.borrow().gathered.is_empty()
    }

    /// Whether these are clones of one socket.
    pub(super) fn is(&self, other: &Socket) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Whether a batch could not write the gathered bytes.
    pub(super) fn is_unsent(&self) -> bool {
        self.0.is_unsent.get()
    }

    /// Makes the connection write the gathered bytes itself, which shows why the batch could not.
    pub(super) fn set_unsent(&self) {
        self.0.is_unsent.set(true);
    }

    /// Writes the gathered bytes.
    pub(super) fn flush(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.0.wire.borrow_mut().flush(context))?;
        self.0.is_unsent.set(false);
        Poll::Ready(Ok(()))
    }
}

impl Wire {
    /// Copies read bytes to hyper, as many as it is granted.
    fn hand_over(&mut self, into: &mut ReadBufCursor<'_>) -> io::Result<()> {
        let granted = usize::try_from(self.granted).unwrap_or(usize::MAX);
        let left = &self.incoming[self.taken..];
        let piece = &left[..left.len().min(granted).min(into.remaining())];
        into.put_slice(piece);
        if self.granted != ALL {
            self.granted -= piece.len() as u64;
        }
        self.taken += piece.len();
        if self.taken == self.incoming.len() {
            (self.incoming, self.taken) = (Vec::new(), 0);
        }
        self.head.received();
        Ok(())
    }

    fn stream(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(self.stream.inner_mut())
    }

    fn flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.gathered.len() {
            let written = Pin::new(self.stream.inner_mut()).poll_write(context, &self.gathered[self.written..]);
            match ready!(self.bounded(context, written))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
            self.has_sent = true;
        }
        if self.gathered.capacity() > 0 {
            buffer::give_back(std::mem::take(&mut self.gathered));
        }
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Takes bytes from hyper: into the buffer, or a large piece directly to the peer.
    fn take(&mut self, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.gathered.len() >= GATHER_BYTES_MAX {
            ready!(self.flush(context))?;
        }
        if let Some(large) =
            pieces.iter().find(|piece| !piece.is_empty()).filter(|piece| piece.len() >= GATHER_BYTES_MAX)
        {
            ready!(self.flush(context))?;
            let written = self.stream().poll_write(context, large);
            self.has_sent |= written.is_ready();
            return self.bounded(context, written);
        }
        if self.gathered.capacity() == 0 {
            self.gathered = buffer::take();
        }
        if let Some(app) = self.unread.as_ref().filter(|_| !self.has_head)
            && let Some((status, bytes)) = own_refusal(pieces)
        {
            response_head::write_unread(&app.front.names, app.reads.clock.now(), status, &mut self.gathered);
            return Poll::Ready(Ok(bytes));
        }
        let mut taken = 0;
        for piece in pieces {
            if taken > 0 && piece.len() >= GATHER_BYTES_MAX {
                break;
            }
            self.gathered.extend_from_slice(piece);
            taken += piece.len();
        }
        Poll::Ready(Ok(taken))
    }

    /// The result of a write, or an error if the peer has read nothing for too long.
    fn bounded<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.write_timeout)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn shutdown(&mut self, context: &mut Context<'_>, cut: bool) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(self.flush(context))?;
            ready!(self.stream().poll_shutdown(context))?;
            self.closing = Some(Closing { read_bytes: 0, until: Box::pin(tokio::time::sleep(LINGER)) });
        }
        self.read_away(context, cut).map(Ok)
    }

    /// Reads and drops what the peer sends after the last response, until it stops or [`LINGER`] ends.
    fn read_away(&mut self, context: &mut Context<'_>, cut: bool) -> Poll<()> {
        let Some(closing) = &mut self.closing else { return Poll::Ready(()) };
        let mut scratch = [MaybeUninit::uninit(); 16 * 1_024];
        loop {
            let mut into = ReadBuf::uninit(&mut scratch);
            match Pin::new(self.stream.inner_mut()).poll_read(context, &mut into) {
                Poll::Ready(Ok(())) if !into.filled().is_empty() && closing.read_bytes < LINGER_BYTES_MAX => {
                    closing.read_bytes += into.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending if cut || closing.read_bytes > 0 => return closing.until.as_mut().poll(context),
                Poll::Pending => return Poll::Ready(()),
            }
        }
    }
}

/// The status and the length of hyper's own response to a head that it cannot read: a head without a body.
fn own_refusal(pieces: &[IoSlice<'_>]) -> Option<(StatusCode, usize)> {
    let mut full = pieces.iter().filter(|piece| !piece.is_empty());
    let (Some(head), None) = (full.next(), full.next()) else { return None };
    let is_empty = head.ends_with(b"\r\n\r\n") && head.windows(19).any(|at| at == b"content-length: 0\r\n");
    let status = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?.get(..3)?;
    let status = StatusCode::from_bytes(status).ok()?;
    (is_empty && status.is_client_error()).then_some((status, head.len()))
}

impl Read for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, mut into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let wire = &mut *self.0.wire.borrow_mut();
        if wire.granted == 0 {
            // The driver of the connection reads, and is woken.
            wire.rests = true;
            return Poll::Pending;
        }
        if wire.taken < wire.incoming.len() {
            return Poll::Ready(wire.hand_over(&mut into));
        }
        if wire.granted == ALL {
            let read = Pin::new(&mut wire.stream).poll_read(context, into);
            if read.is_ready() {
                wire.head.received();
            }
            return read;
        }
        let mut room = [0; 4 * 1_024];
        let most = usize::try_from(wire.granted).unwrap_or(usize::MAX).min(room.len()).min(into.remaining());
        let mut piece = ReadBuf::new(&mut room[..most]);
        ready!(wire.stream().poll_read(context, &mut piece))?;
        match piece.filled() {
            // The request will never be complete.
            [] => wire.granted = ALL,
            bytes => {
                wire.granted -= bytes.len() as u64;
                into.put_slice(bytes);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.wire.borrow_mut().take(context, &[IoSlice::new(bytes)])
    }

    /// Does nothing: the driver writes the gathered bytes before the connection waits.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.wire.borrow_mut().shutdown(context, self.0.cut.get())
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.wire.borrow_mut().take(context, pieces)
    }
}
