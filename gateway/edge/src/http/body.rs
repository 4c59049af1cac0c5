//! The body of a response: whole, or pages that are made as the peer reads them.
//!
//! A streamed body is a future that sends pages into its [`Sink`]. It runs inside the poll of its connection, at most one
//! page ahead of the socket, and is dropped with the connection: there is no task and no queue, and a slow reader costs
//! at most one page and the socket's buffer. After each page other tasks of the thread run. A peer that stops reading is
//! disconnected by the socket's own deadline.
//!
//! The headers are sent when a page fails, so a failure closes the connection: a body that ends cleanly is complete.

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

/// What a connection sends after a head.
#[derive(Debug)]
pub enum Body {
    Whole(Whole),
    Streamed(Box<Streamed>),
    /// No body: after its 101 the connection speaks another protocol.
    Upgraded(Upgrade),
}

/// A body that is whole: one piece, or none.
#[derive(Debug)]
pub struct Whole(Bytes);

impl Whole {
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

type Speaking = Pin<Box<dyn Future<Output = ()>>>;

/// The protocol of a connection after a 101: it gets the socket, and the bytes that arrived early.
pub struct Upgrade(Box<dyn FnOnce(TcpStream, Bytes) -> Speaking>);

impl Upgrade {
    pub fn new<F>(speak: impl FnOnce(TcpStream, Bytes) -> F + 'static) -> Upgrade
    where
        F: Future<Output = ()> + 'static,
    {
        Upgrade(Box::new(move |stream, early| Box::pin(speak(stream, early))))
    }

    /// Runs it to its end.
    pub(super) async fn run(self, stream: TcpStream, early: Bytes) {
        (self.0)(stream, early).await;
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgrade").finish_non_exhaustive()
    }
}

/// A page could not be made: the body is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a page of the answer could not be made")
    }
}

impl std::error::Error for Cut {}

/// A piece of this size is compressed in well under a millisecond.
const PIECE_BYTES: usize = 32 << 10;

type Making = Pin<Box<dyn Future<Output = Result<(), Cut>>>>;

/// A body that is made while it is sent.
pub struct Pages {
    making: Making,
    page: Rc<RefCell<Option<Vec<u8>>>>,
    /// The request counts as in flight until its response is made.
    in_flight: Option<InFlight>,
    /// It ends when its peer leaves.
    live: bool,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}

/// Where a streamed body puts its pages.
pub struct Sink(Rc<RefCell<Option<Vec<u8>>>>);

impl Sink {
    /// Sends the next page; returns when the connection has room for the one after it and other tasks have run.
    pub async fn send(&mut self, page: Vec<u8>) {
        if page.is_empty() {
            return tokio::task::yield_now().await;
        }
        *self.0.borrow_mut() = Some(page);
        // Polled again by the connection, which has taken the page by then.
        std::future::poll_fn(|_| if self.0.borrow().is_none() { Poll::Ready(()) } else { Poll::Pending }).await;
        tokio::task::yield_now().await;
    }
}

impl Pages {
    /// The body that `make` sends.
    pub fn new<F>(make: impl FnOnce(Sink) -> F) -> Pages
    where
        F: Future<Output = Result<(), Cut>> + 'static,
    {
        let page = Rc::new(RefCell::new(None));
        Pages { making: Box::pin(make(Sink(Rc::clone(&page)))), page, in_flight: None, live: false }
    }

    /// A body that goes on while its peer reads: not compressed, and its handler bounds how many there are.
    pub fn live<F>(make: impl FnOnce(Sink) -> F) -> Pages
    where
        F: Future<Output = Result<(), Cut>> + 'static,
    {
        Pages { live: true, ..Pages::new(make) }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// A body that is whole already, in pieces: compressing all of it in one step would delay other tasks.
    pub(super) fn cut(whole: Vec<u8>) -> Pages {
        Pages::new(|mut sink| async move {
            for piece in whole.chunks(PIECE_BYTES) {
                sink.send(piece.to_vec()).await;
            }
            Ok(())
        })
    }

    /// The request counts as in flight until the last byte is made.
    pub(super) fn hold(&mut self, in_flight: Option<InFlight>) {
        if !self.live {
            self.in_flight = in_flight;
        }
    }

    fn poll_page(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Vec<u8>>, Cut>> {
        match self.making.as_mut().poll(context) {
            Poll::Ready(Err(cut)) => Poll::Ready(Err(cut)),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(None)),
            Poll::Pending => match self.page.borrow_mut().take() {
                Some(page) => Poll::Ready(Ok(Some(page))),
                None => Poll::Pending,
            },
        }
    }
}

/// Pages while they are sent, compressed if the peer admits that.
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

    /// It goes on while its peer reads.
    pub(super) fn is_live(&self) -> bool {
        self.pages.as_ref().is_some_and(Pages::is_live)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
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
            // What was sent can be read immediately: each page ends on a byte.
            (Some(page), Some(gzip)) => match gzip.write_all(&page).and_then(|()| gzip.flush()) {
                Ok(()) => std::mem::take(gzip.get_mut()),
                Err(_) => return Poll::Ready(Some(Err(Cut))),
            },
            (None, gzip) => {
                self.pages = None;
                match gzip.take().map(GzEncoder::finish) {
                    Some(Ok(rest)) => rest,
                    Some(Err(_)) => return Poll::Ready(Some(Err(Cut))),
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
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
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
            Body::Streamed(_) => SizeHint::default(),
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

    /// A body of [`PAGES`] pages that counts how many it made, and fails at the page `fails_at`.
    fn body(made: &Rc<Cell<usize>>, gzip: bool, fails_at: usize) -> Body {
        let made = Rc::clone(made);
        let pages = Pages::new(|mut sink| async move {
            for number in 0..PAGES {
                if number == fails_at {
                    return Err(Cut);
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
    fn what_fails_does_not_look_complete() {
        for (gzip, fails_at) in [(false, 0), (false, 7), (true, 7)] {
            let made = Rc::new(Cell::new(0));
            let error = run(async { body(&made, gzip, fails_at).collect().await.map(|_| ()) });
            assert_eq!((error, made.get()), (Err(Cut), fails_at));
        }
        println!("cut bodies: 3 cases");
    }
}
