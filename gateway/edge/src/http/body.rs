//! The body of a response: one buffer, or pages that are made while the peer reads them.
//!
//! A streamed body is a future that sends pages into its [`Sink`]. The connection polls it, it is at most one page
//! ahead of the socket, and it is dropped with the connection. There is no task and no queue, so a slow reader costs at
//! most one page and the socket's buffer. Other tasks of the thread run after each page. The socket's own deadline
//! disconnects a peer that stops reading.
//!
//! A page can fail after the head is sent. The connection is then closed, so only a complete body ends cleanly.

use super::limit::InFlight;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Frame, SizeHint};
use std::cell::RefCell;
use std::fmt;
use std::io::Write as _;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::net::TcpStream;

/// What follows a head on a connection.
#[derive(Debug)]
pub enum Body {
    Whole(Whole),
    Streamed(Box<Streamed>),
    /// No body: after the 101 the connection has another protocol.
    Upgraded(Upgrade),
}

/// A body in one buffer, or none.
#[derive(Debug)]
pub struct Whole(Bytes);

impl Whole {
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

type Speaking = Pin<Box<dyn Future<Output = ()>>>;

/// The protocol after a 101. It takes the socket and the bytes that were already read from it.
pub struct Upgrade(Box<dyn FnOnce(TcpStream, Bytes) -> Speaking>);

impl Upgrade {
    pub fn new<F>(speak: impl FnOnce(TcpStream, Bytes) -> F + 'static) -> Upgrade
    where
        F: Future<Output = ()> + 'static,
    {
        Upgrade(Box::new(move |stream, early| Box::pin(speak(stream, early))))
    }

    /// Runs the protocol until it ends.
    pub(super) async fn run(self, stream: TcpStream, early: Bytes) {
        (self.0)(stream, early).await;
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgrade").finish_non_exhaustive()
    }
}

/// A page failed: the body is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a page of the response could not be made")
    }
}

impl std::error::Error for Truncated {}

/// Compressing a piece of this size takes well under a millisecond.
const PIECE_BYTES: usize = 32 << 10;

type Making = Pin<Box<dyn Future<Output = Result<(), Truncated>>>>;

/// A body that is made while it is sent.
pub struct Pages {
    making: Making,
    page: Rc<RefCell<Option<Vec<u8>>>>,
    /// Holds the request's slot in flight until its response is made.
    in_flight: Option<InFlight>,
    /// Whether the body ends when the peer leaves.
    live: bool,
    /// How many bytes are still to come, if that is known.
    left: Option<u64>,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}

/// Where a streamed body sends its pages.
pub struct Sink(Rc<RefCell<Option<Vec<u8>>>>);

impl Sink {
    /// Sends the next page. Returns when the connection has room for another one and other tasks have run.
    pub async fn send(&mut self, page: Vec<u8>) {
        if page.is_empty() {
            return tokio::task::yield_now().await;
        }
        *self.0.borrow_mut() = Some(page);
        // The connection polls again when it has taken the page.
        std::future::poll_fn(|_| if self.0.borrow().is_none() { Poll::Ready(()) } else { Poll::Pending }).await;
        tokio::task::yield_now().await;
    }
}

impl Pages {
    /// A body of the pages that `make` sends.
    pub fn new<F>(make: impl FnOnce(Sink) -> F) -> Pages
    where
        F: Future<Output = Result<(), Truncated>> + 'static,
    {
        let page = Rc::new(RefCell::new(None));
        Pages { making: Box::pin(make(Sink(Rc::clone(&page)))), page, in_flight: None, live: false, left: None }
    }

    /// A body of exactly this many bytes. Its response states them, and it is not compressed.
    pub fn sized<F>(bytes: u64, make: impl FnOnce(Sink) -> F) -> Pages
    where
        F: Future<Output = Result<(), Truncated>> + 'static,
    {
        Pages { left: Some(bytes), ..Pages::new(make) }
    }

    /// A body without an end. It is not compressed, and its handler limits how many are open.
    pub fn live<F>(make: impl FnOnce(Sink) -> F) -> Pages
    where
        F: Future<Output = Result<(), Truncated>> + 'static,
    {
        Pages { live: true, ..Pages::new(make) }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// Bytes that are still to come, if that is known.
    pub(super) fn left(&self) -> Option<u64> {
        self.left
    }

    /// Splits a complete body into pieces: compressing it in one step would delay other tasks.
    pub(super) fn cut(whole: Vec<u8>) -> Pages {
        Pages::new(|mut sink| async move {
            for piece in whole.chunks(PIECE_BYTES) {
                sink.send(piece.to_vec()).await;
            }
            Ok(())
        })
    }

    /// Holds the request's slot in flight until the last byte is made.
    pub(super) fn hold(&mut self, in_flight: Option<InFlight>) {
        if !self.live {
            self.in_flight = in_flight;
        }
    }

    fn poll_page(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Vec<u8>>, Truncated>> {
        match self.making.as_mut().poll(context) {
            Poll::Ready(Err(cut)) => Poll::Ready(Err(cut)),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(None)),
            Poll::Pending => match self.page.borrow_mut().take() {
                Some(page) => {
                    self.left = self.left.map(|left| left.saturating_sub(page.len() as u64));
                    Poll::Ready(Ok(Some(page)))
                }
                None => Poll::Pending,
            },
        }
    }
}

/// Pages being sent, compressed if the peer accepts it.
#[derive(Debug)]
pub struct Streamed {
    /// `None` after the last page.
    pages: Option<Pages>,
    gzip: Option<GzEncoder<Vec<u8>>>,
}

impl Streamed {
    pub fn new(pages: Pages, gzip: bool) -> Streamed {
        Streamed { pages: Some(pages), gzip: gzip.then(|| GzEncoder::new(Vec::new(), Compression::fast())) }
    }

    /// Whether the body has no end.
    pub(super) fn is_live(&self) -> bool {
        self.pages.as_ref().is_some_and(Pages::is_live)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        let Some(pages) = &mut self.pages else { return Poll::Ready(None) };
        let page = match std::task::ready!(pages.poll_page(context)) {
            Ok(page) => page,
            Err(cut) => {
                self.pages = None;
                return Poll::Ready(Some(Err(cut)));
            }
        };
        let bytes = match (page, &mut self.gzip) {
            (Some(page), None) => page,
            // A page is flushed, so that the peer can decompress what it has.
            (Some(page), Some(gzip)) => match gzip.write_all(&page).and_then(|()| gzip.flush()) {
                Ok(()) => std::mem::take(gzip.get_mut()),
                Err(_) => return Poll::Ready(Some(Err(Truncated))),
            },
            (None, gzip) => {
                self.pages = None;
                match gzip.take().map(GzEncoder::finish) {
                    Some(Ok(rest)) => rest,
                    Some(Err(_)) => return Poll::Ready(Some(Err(Truncated))),
                    None => return Poll::Ready(None),
                }
            }
        };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(bytes)))))
    }
}

impl From<Vec<u8>> for Body {
    fn from(whole: Vec<u8>) -> Body {
        Body::Whole(Whole(Bytes::from(whole)))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Truncated;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        match self.get_mut() {
            Body::Whole(Whole(bytes)) => {
                let piece = std::mem::take(bytes);
                Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
            }
            Body::Streamed(streamed) => streamed.poll(context),
            Body::Upgraded(_) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(Whole(bytes)) => bytes.is_empty(),
            Body::Streamed(streamed) => streamed.pages.is_none(),
            Body::Upgraded(_) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(Whole(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            Body::Streamed(streamed) => {
                streamed.pages.as_ref().and_then(Pages::left).map_or_else(SizeHint::default, SizeHint::with_exact)
            }
            Body::Upgraded(_) => SizeHint::with_exact(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::run;
    use http_body_util::BodyExt as _;
    use std::cell::Cell;
    use std::io::Read as _;

    const PAGES: usize = 50;

    /// A body of [`PAGES`] pages that counts the pages made, and fails at page `fails_at`.
    fn body(made: &Rc<Cell<usize>>, gzip: bool, fails_at: usize) -> Body {
        let made = Rc::clone(made);
        let pages = Pages::new(|mut sink| async move {
            for number in 0..PAGES {
                if number == fails_at {
                    return Err(Truncated);
                }
                made.set(made.get() + 1);
                sink.send(format!("page {number}\n").into_bytes()).await;
                sink.send(Vec::new()).await;
            }
            Ok(())
        });
        Body::Streamed(Box::new(Streamed::new(pages, gzip)))
    }

    fn whole() -> String {
        (0..PAGES).map(|number| format!("page {number}\n")).collect()
    }

    #[test]
    fn a_page_is_made_when_the_one_before_it_is_taken() {
        for gzip in [false, true] {
            let made = Rc::new(Cell::new(0));
            let mut body = body(&made, gzip, PAGES);
            run(async {
                assert_eq!(made.get(), 0, "nothing is made before the first read");
                let (mut taken, mut bytes) = (0, Vec::new());
                while let Some(frame) = body.frame().await {
                    bytes.extend_from_slice(&frame.expect("sound").into_data().expect("data"));
                    taken += 1;
                    assert!(made.get() <= taken, "{} pages made, {taken} taken", made.get());
                }
                let mut text = String::new();
                match gzip {
                    true => _ = flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip"),
                    false => text = String::from_utf8(bytes).expect("text"),
                }
                assert_eq!(text, whole());
            });
        }
        println!("streamed bodies: 2 cases");
    }

    #[test]
    fn a_body_of_a_known_size_states_what_is_left() {
        let pages = Pages::sized(10, |mut sink| async move {
            for page in ["four", "", "six by"] {
                sink.send(page.as_bytes().to_vec()).await;
            }
            Ok(())
        });
        let mut body = Body::Streamed(Box::new(Streamed::new(pages, false)));
        let mut hints = Vec::new();
        run(async {
            loop {
                hints.push(hyper::body::Body::size_hint(&body).exact());
                if body.frame().await.is_none() {
                    break;
                }
            }
        });
        assert_eq!(hints, [Some(10), Some(6), Some(0)]);
        println!("sized bodies: {} hints", hints.len());
    }

    #[test]
    fn a_failed_body_does_not_look_complete() {
        for (gzip, fails_at) in [(false, 0), (false, 7), (true, 7)] {
            let made = Rc::new(Cell::new(0));
            let error = run(async { body(&made, gzip, fails_at).collect().await.map(|_| ()) });
            assert_eq!((error, made.get()), (Err(Truncated), fails_at));
        }
        println!("cut bodies: 3 cases");
    }
}
