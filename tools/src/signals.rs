//! SIGINT and SIGTERM, for a verb with work to finish: the first one requests a clean end, the second one cancels all
//! waiting, and the third one ends the process immediately.
//!
//! A separate thread listens for them, so that a busy main thread does not delay them.

use std::fmt;
use std::io;
use std::process::exit;
use std::thread::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// This many signals end the process immediately: it may be blocked on a reader that does not read.
const PATIENCE_SIGNALS: u32 = 3;

/// The signals that were sent to this process so far.
#[derive(Clone)]
pub struct Signals(watch::Receiver<Received>);

#[derive(Clone, Copy, Default)]
struct Received {
    count: u32,
    first: Option<Signal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Interrupt,
    Terminate,
}

impl Signal {
    /// As a shell reports a process that a signal ended: 128 plus its number.
    fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// The error of a verb that a signal ended early.
#[derive(Debug, PartialEq, Eq)]
pub struct Interrupted {
    by: Signal,
    /// The steps that were skipped therefore, and other errors.
    pub also: Vec<String>,
}

impl Interrupted {
    /// Exit code of the process: 130 for SIGINT, 143 for SIGTERM.
    pub fn exit_code(&self) -> u8 {
        self.by.exit_code()
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.by {
            Signal::Interrupt => "interrupted by SIGINT",
            Signal::Terminate => "interrupted by SIGTERM",
        })?;
        self.also.iter().try_for_each(|also| write!(f, "; {also}"))
    }
}

impl std::error::Error for Interrupted {}

impl Signals {
    /// Installs the handlers; from here on neither signal ends the process directly.
    ///
    /// # Errors
    /// A system error, when the thread or a handler cannot be installed.
    pub fn catch() -> io::Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (mut interrupt, mut terminate) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        let (sender, receiver) = watch::channel(Received::default());
        let listen = async move {
            loop {
                let signal = tokio::select! {
                    _ = interrupt.recv() => Signal::Interrupt,
                    _ = terminate.recv() => Signal::Terminate,
                };
                sender.send_modify(|received| {
                    received.count += 1;
                    received.first.get_or_insert(signal);
                });
                if sender.borrow().count >= PATIENCE_SIGNALS {
                    exit(signal.exit_code().into());
                }
            }
        };
        Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen))?;
        Ok(Signals(receiver))
    }

    /// The error to end with, if there was a signal.
    pub fn received(&self) -> Option<Interrupted> {
        self.0.borrow().first.map(|by| Interrupted { by, also: Vec::new() })
    }

    /// Returns when a clean end is requested.
    pub async fn end(&self) {
        self.count(1).await;
    }

    /// The future's result, unless a clean end is requested first.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub async fn unless_ended<T>(&self, what: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            () = self.end() => Err(self.received().expect("the signal was received")),
            done = what => Ok(done),
        }
    }

    /// Returns when nothing may be waited for any more.
    pub async fn hurry(&self) {
        self.count(2).await;
    }

    async fn count(&self, least: u32) {
        // Its thread lives as long as the process.
        let _ = self.0.clone().wait_for(|received| received.count >= least).await;
    }

    /// Signals of a process that receives none.
    #[cfg(test)]
    pub fn none() -> Signals {
        let (sender, receiver) = watch::channel(Received::default());
        std::mem::forget(sender);
        Signals(receiver)
    }
}
