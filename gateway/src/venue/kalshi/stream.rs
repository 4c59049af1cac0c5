//! Kalshi's adapter: catalogue crawl, the signed socket, and books by REST where there are no credentials
//! (upstream.md §4).

use crate::venue::live::{Tools, Want};
use std::io;
use std::path::PathBuf;
use tokio::sync::mpsc::UnboundedReceiver;

/// How Kalshi is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses of its services, prefix included.
    pub api: String,
    pub socket: String,
    /// Of the account whose key signs the handshake; without it books are polled.
    pub key_id: Option<String>,
    /// Its RSA private key, in PEM.
    pub private_key_file: Option<PathBuf>,
    /// Markets whose books are subscribed at most.
    pub markets_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            api: "https://external-api.kalshi.com/trade-api/v2".into(),
            socket: "wss://external-api-ws.kalshi.com/trade-api/ws/v2".into(),
            key_id: None,
            private_key_file: None,
            markets_max: 20_000,
        }
    }
}

/// Signs handshakes.
pub struct Signer;

impl Settings {
    /// Reads the credentials, if there are any.
    ///
    /// # Errors
    /// One half of them is missing, or the key cannot be read.
    pub fn signer(&self) -> io::Result<Option<Signer>> {
        Ok(None)
    }
}

/// Runs until nobody wants anything any more.
pub async fn run(settings: Settings, signer: Option<Signer>, tools: Tools, mut wants: UnboundedReceiver<Want>) {
    let _ = (settings, signer, tools);
    while wants.recv().await.is_some() {}
}
