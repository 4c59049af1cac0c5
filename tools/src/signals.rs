//! SIGINT and SIGTERM, for a verb that has something to bring home: the first one asks for an end in order, a second one
//! says that nothing more is waited for, and a third one ends the process where it stands.
//!
//! They are listened for on a thread of their own, so that whoever is busy hears of them all the same.

use std::fmt;
use std::io;
use std::process::exit;
use std::thread::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// So many signals end the process, whatever it is doing: it may be writing to somebody who does not read.
const PATIENCE_SIGNALS: u32 = 3;

/// What was sent to this process so far.
#[derive(Clone)]
pub struct Signals(watch::Receiver<Heard>);

#[derive(Clone, Copy, Default)]
struct Heard {
    count: u32,
    first: Option<Signal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Interrupt,
    Terminate,
}

impl Signal {
    /// As a shell shows a process that died of it: 128 and its number.
    fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// The error of a verb that was ended before its time.
#[derive(Debug, PartialEq, Eq)]
pub struct Interrupted {
    by: Signal,
    /// What was not done therefore, and what else went wrong.
    pub also: Vec<String>,
}

impl Interrupted {
    /// What the process ends with: 130 for SIGINT, 143 for SIGTERM.
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
    /// From here on neither signal ends the process by itself.
    ///
    /// # Errors
    /// The system's, when there is no thread or no handler to be had.
    pub fn catch() -> io::Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (mut interrupt, mut terminate) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        let (sender, receiver) = watch::channel(Heard::default());
        let listen = async move {
            loop {
                let signal = tokio::select! {
                    _ = interrupt.recv() => Signal::Interrupt,
                    _ = terminate.recv() => Signal::Terminate,
                };
                sender.send_modify(|heard| {
                    heard.count += 1;
                    heard.first.get_or_insert(signal);
                });
                if sender.borrow().count >= PATIENCE_SIGNALS {
                    exit(signal.exit_code().into());
                }
            }
        };
        Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen))?;
        Ok(Signals(receiver))
    }

    /// The error to end with, if there was any signal.
    pub fn heard(&self) -> Option<Interrupted> {
        self.0.borrow().first.map(|by| Interrupted { by, also: Vec::new() })
    }

    /// Comes back when an end in order is asked for.
    pub async fn end(&self) {
        self.count(1).await;
    }

    /// What comes of it, unless an end is asked for before.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub async fn unless_ended<T>(&self, what: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            () = self.end() => Err(self.heard().expect("it was heard")),
            done = what => Ok(done),
        }
    }

    /// Comes back when nothing more may be waited for.
    pub async fn hurry(&self) {
        self.count(2).await;
    }

    async fn count(&self, least: u32) {
        // Its thread lives as long as the process.
        let _ = self.0.clone().wait_for(|heard| heard.count >= least).await;
    }

    /// Of a process to which nothing is sent.
    #[cfg(test)]
    pub fn none() -> Signals {
        let (sender, receiver) = watch::channel(Heard::default());
        std::mem::forget(sender);
        Signals(receiver)
    }
}
