//! `key`: creates another API key for a user of a running server, for example when the old one is lost.

use crate::Failure;
use crate::settings::{Settings, print_line};
use crate::token;
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Timeout of the server's answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// Lifetime of the identity token that the command signs for itself.
const TOKEN_SECONDS: u64 = 60;

#[derive(Args)]
pub struct Key {
    #[command(flatten)]
    settings: Settings,
    /// The user id at the identity provider; `demo` is the user that the first start creates.
    #[arg(long, default_value = "demo")]
    sub: String,
    /// Label of the new key.
    #[arg(long, default_value = "made by papertape key")]
    name: String,
    /// Address of the running server (default: server.listen of the settings).
    #[arg(long, value_name = "ADDR")]
    server: Option<SocketAddr>,
}

impl Key {
    pub fn run(self) -> Result<(), Failure> {
        let Key { settings, sub, name, server } = self;
        let mut config = settings.load(Vec::new())?;
        let server = server.unwrap_or(config.server.listen);
        let token = token::signed(&mut config, &sub, None, TOKEN_SECONDS)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let asked = async { timeout(ANSWER_WITHIN, ask(server, &token, &name)).await };
        let (status, body) = runtime
            .block_on(asked)
            .map_err(|_| format!("{server}: no answer within {} s", ANSWER_WITHIN.as_secs()))?
            .map_err(|error| format!("{server}: {error}; is the server of this data directory running there?"))?;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        match answer["raw_key"].as_str() {
            Some(key) if status == StatusCode::CREATED => print_line(key),
            _ => {
                let why = answer["message"].as_str().unwrap_or("the answer has no key").to_owned();
                return Err(format!("{server} created no key: {} {why}", status.as_u16()).into());
            }
        }
        Ok(())
    }
}

async fn ask(server: SocketAddr, token: &str, name: &str) -> Result<(StatusCode, Bytes), Failure> {
    let (mut sender, connection) = handshake(TokioIo::new(TcpStream::connect(server).await?)).await?;
    tokio::spawn(async move { drop(connection.await) });
    let request = Request::post("/v1/keys")
        .header(HOST, server.to_string())
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::<Bytes>::from(json!({ "name": name }).to_string()))?;
    let answer = sender.send_request(request).await?;
    Ok((answer.status(), answer.into_body().collect().await?.to_bytes()))
}
