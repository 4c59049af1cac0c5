//! One file from a server of published hours: what is asked for, what of an answer is believed, and what is tried again.

use super::part::Part;
use super::sums::Sums;
use crate::live::{reason, retry_after};
use archive::read::FILE_BYTES_MAX;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, IF_RANGE, RANGE,
};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response, StatusCode, Url};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The file of digests beside the hours.
const SUMS_NAME: &str = "SHA256SUMS.txt";
const SUMS_BYTES_MAX: u64 = 8 << 20;
const REDIRECTS_MAX: usize = 5;
/// Longest ETag that is used.
const ETAG_BYTES_MAX: usize = 256;
/// The shortest Parquet file.
const FILE_BYTES_MIN: u64 = 12;

/// How patient downloads are.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Longest wait for a connection, and for the head of an answer.
    pub head: Duration,
    /// Time in which at least `window_bytes` arrive.
    pub window: Duration,
    pub window_bytes: u64,
    /// Bytes, and length of a pause, after which what came is synced and noted.
    pub sync_bytes: u64,
    pub sync_after: Duration,
    /// Tries in a row that bring less than `sync_bytes`, and the wait before the second one; each later wait is twice as
    /// long.
    pub tries: u32,
    pub retry_first: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            head: Duration::from_secs(30),
            window: Duration::from_secs(60),
            window_bytes: 256 << 10,
            sync_bytes: 8 << 20,
            sync_after: Duration::from_secs(1),
            tries: 4,
            retry_first: Duration::from_secs(1),
        }
    }
}

/// A server of published hours.
pub struct Source {
    client: Client,
    /// Without a slash at the end.
    base: String,
    /// The folder of parts.
    parts: PathBuf,
    pace: Pace,
}

/// What became of a file.
pub(super) enum Downloaded {
    /// It has the announced length, and begins and ends as Parquet does.
    Whole(Part),
    /// The server does not have it.
    Missing,
    Failed(String),
}

/// What one try brought.
enum Tried {
    Whole,
    Missing,
}

/// Why a try failed.
enum Fault {
    /// It may go better next time, after this wait if the server asks for one.
    Passing(String, Option<Duration>),
    /// It will not.
    Lasting(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Lasting(error.to_string())
    }
}

fn passing(reason: impl Into<String>) -> Fault {
    Fault::Passing(reason.into(), None)
}

fn lasting<T>(reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Lasting(reason.into()))
}

/// Where addresses lead. A redirect never leaves this class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// This machine.
    Loopback,
    /// Another one, by https.
    Public,
}

/// `None`: nothing is fetched from there.
fn reach(url: &Url) -> Option<Reach> {
    let host = url.host_str()?.trim_matches(['[', ']']);
    let is_loopback = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    match (url.scheme(), is_loopback) {
        ("http" | "https", true) => Some(Reach::Loopback),
        ("https", false) => Some(Reach::Public),
        _ => None,
    }
}

impl Source {
    /// Hours are at `{url}/NAME.parquet`; their parts are kept in a folder.
    ///
    /// # Errors
    /// The address is not https, or http of this machine; the system's roots of trust cannot be read.
    pub fn new(url: &str, parts: &Path, pace: Pace) -> Result<Source, String> {
        let wrong = |why: &str| format!("{url:?}: {why}; allowed is an address with https, or http of this machine");
        let parsed = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        let own = reach(&parsed).ok_or_else(|| wrong("nothing is fetched from there"))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err("an address with a user name or a password is not taken".into());
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(wrong("it ends in a query or a fragment"));
        }
        // Only the first call in a process installs it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let policy = Policy::custom(move |attempt: Attempt<'_>| match reach(attempt.url()) {
            to if to != Some(own) => {
                let place = format!("{}://{}", attempt.url().scheme(), attempt.url().host_str().unwrap_or_default());
                attempt.error(format!("a redirect to {place} is not followed"))
            }
            _ if attempt.previous().len() > REDIRECTS_MAX => attempt.error("too many redirects"),
            _ => attempt.follow(),
        });
        let mut client = Client::builder()
            .user_agent(concat!("papertape/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(pace.head)
            // The bytes of the file are wanted, not what they unpack to.
            .no_gzip()
            .redirect(policy);
        if own == Reach::Loopback {
            client = client.no_proxy();
        }
        let client = client.build().map_err(reason)?;
        Ok(Source { client, base: url.trim_end_matches('/').to_owned(), parts: parts.to_owned(), pace })
    }

    /// The address of a file.
    pub(super) fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    /// The published digests; without any, why there are none, if that is strange.
    ///
    /// # Errors
    /// They may be there, and cannot be read now.
    pub(super) async fn sums(&self) -> Result<(Sums, Option<String>), String> {
        let (mut wait, mut number) = (self.pace.retry_first, 1);
        loop {
            match self.try_sums().await {
                Ok(None) => return Ok((Sums::default(), None)),
                Ok(Some(text)) => {
                    let sums = Sums::parse(&text);
                    let strange = sums.is_empty().then(|| format!("{SUMS_NAME} has no line of a digest"));
                    return Ok((sums, strange));
                }
                Err(Fault::Passing(_, asked)) if number < self.pace.tries => {
                    sleep(asked.unwrap_or(wait)).await;
                    wait *= 2;
                    number += 1;
                }
                Err(Fault::Passing(reason, _) | Fault::Lasting(reason)) => {
                    return Err(format!("{}: {reason}", self.url(SUMS_NAME)));
                }
            }
        }
    }

    /// The text of the digests; `None`: the file is absent. A server that does not list its files answers 403 for a missing
    /// one.
    async fn try_sums(&self) -> Result<Option<Vec<u8>>, Fault> {
        let read = async {
            let mut response = self.client.get(self.url(SUMS_NAME)).send().await.map_err(fault)?;
            match response.status() {
                StatusCode::OK => {}
                StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => return Ok(None),
                status => return Err(refusal(status, &response)),
            }
            let mut text = Vec::new();
            while let Some(piece) = response.chunk().await.map_err(fault)? {
                if (text.len() + piece.len()) as u64 > SUMS_BYTES_MAX {
                    return lasting(format!("more than {SUMS_BYTES_MAX} bytes"));
                }
                text.extend_from_slice(&piece);
            }
            Ok(Some(text))
        };
        timeout(self.pace.window, read).await.unwrap_or_else(|_| Err(passing("no whole answer in time")))
    }

    /// Downloads a file, or the rest of it.
    pub(super) async fn download(&self, name: &str) -> Downloaded {
        let mut part = match Part::open(&self.parts, name) {
            Ok(part) => part,
            Err(error) => return Downloaded::Failed(format!("{}: {error}", self.parts.display())),
        };
        if part.is_whole() {
            return Downloaded::Whole(part);
        }
        let (mut wait, mut number) = (self.pace.retry_first, 1);
        loop {
            let before = part.len();
            let fault = match self.try_once(name, &mut part).await {
                Ok(Tried::Whole) => return Downloaded::Whole(part),
                Ok(Tried::Missing) => {
                    part.remove();
                    return Downloaded::Missing;
                }
                Err(fault) => fault,
            };
            let (reason, asked) = match fault {
                Fault::Lasting(reason) => {
                    part.remove();
                    return Downloaded::Failed(reason);
                }
                Fault::Passing(reason, asked) => (reason, asked),
            };
            if let Err(error) = part.sync() {
                return Downloaded::Failed(error.to_string());
            }
            if part.len() >= before + self.pace.sync_bytes {
                (wait, number) = (self.pace.retry_first, 0);
            }
            if number == self.pace.tries {
                // What came stays for the next run.
                if part.len() == 0 {
                    part.remove();
                }
                return Downloaded::Failed(reason);
            }
            tracing::debug!(name, reason, "a download is tried again");
            number += 1;
            sleep(asked.unwrap_or(wait)).await;
            wait *= 2;
        }
    }

    async fn try_once(&self, name: &str, part: &mut Part) -> Result<Tried, Fault> {
        let mut request = self.client.get(self.url(name));
        let asked = part.etag().map(|etag| (part.len(), etag.to_owned()));
        if let Some((from, etag)) = &asked {
            // Another file is sent whole.
            request = request.header(RANGE, format!("bytes={from}-")).header(IF_RANGE, etag);
        }
        let answer = timeout(self.pace.head, request.send()).await.map_err(|_| passing("no answer in time"))?;
        let response = answer.map_err(fault)?;
        let headers = response.headers();
        match (response.status(), &asked) {
            (StatusCode::OK, _) => {
                plain(headers)?;
                part.begin(announced(headers)?, strong_etag(headers))?;
            }
            (StatusCode::PARTIAL_CONTENT, Some((from, etag))) => {
                plain(headers)?;
                if let Err(reason) = is_rest(headers, *from, part.bytes().unwrap_or(0), etag) {
                    part.clear()?;
                    return Err(passing(reason));
                }
            }
            (StatusCode::PARTIAL_CONTENT, None) => return lasting("a part was sent that was not asked for"),
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
                part.clear()?;
                return Err(passing("the rest is not there"));
            }
            (StatusCode::NOT_FOUND, _) => return Ok(Tried::Missing),
            (status, _) => return Err(refusal(status, &response)),
        }
        self.read(response, part).await?;
        if part.bytes() != Some(part.len()) {
            let (len, bytes) = (part.len(), part.bytes().unwrap_or(0));
            return Err(passing(format!("the answer ended after {len} of {bytes} bytes")));
        }
        part.sync()?;
        match part.ends_well()? {
            true => Ok(Tried::Whole),
            false => lasting("it does not end with PAR1"),
        }
    }

    /// Reads the body of an answer.
    async fn read(&self, mut response: Response, part: &mut Part) -> Result<(), Fault> {
        let kind = text(response.headers(), CONTENT_TYPE).unwrap_or("no type").chars().take(80).collect::<String>();
        let (mut began, mut arrived) = (Instant::now(), 0);
        loop {
            match timeout(self.pace.sync_after, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    part.append(&bytes)?;
                    arrived += bytes.len() as u64;
                    if !part.begins_well()? {
                        return lasting(format!("it does not begin with PAR1 ({kind})"));
                    }
                    if part.unsynced() >= self.pace.sync_bytes {
                        part.sync()?;
                    }
                }
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(error)) => return Err(fault(error)),
                Err(_) => part.sync()?,
            }
            if began.elapsed() >= self.pace.window {
                if arrived < self.pace.window_bytes {
                    return Err(passing(format!("only {arrived} bytes came in {:?}", self.pace.window)));
                }
                (began, arrived) = (Instant::now(), 0);
            }
        }
    }
}

/// What a status other than those that are taken means.
fn refusal(status: StatusCode, response: &Response) -> Fault {
    let reason = format!("status {}", status.as_u16());
    match status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
        true => Fault::Passing(reason, retry_after(response)),
        false => Fault::Lasting(reason),
    }
}

/// A failure of a request: redirects that are not followed last.
fn fault(error: reqwest::Error) -> Fault {
    match error.is_redirect() || error.is_builder() {
        true => Fault::Lasting(reason(error)),
        false => passing(reason(error)),
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The body is the file itself.
fn plain(headers: &HeaderMap) -> Result<(), Fault> {
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => lasting("it was sent in another encoding"),
        _ => Ok(()),
    }
}

/// The length of the file.
fn announced(headers: &HeaderMap) -> Result<u64, Fault> {
    match text(headers, CONTENT_LENGTH).and_then(|text| text.parse().ok()) {
        None => lasting("the answer does not state its length"),
        Some(bytes @ ..FILE_BYTES_MIN) => lasting(format!("it has {bytes} bytes")),
        Some(bytes) if bytes > FILE_BYTES_MAX => {
            lasting(format!("it has {bytes} bytes; at most {FILE_BYTES_MAX} are taken"))
        }
        Some(bytes) => Ok(bytes),
    }
}

/// An ETag that means equal bytes.
fn strong_etag(headers: &HeaderMap) -> Option<String> {
    let etag = text(headers, ETAG)?;
    let is_strong = etag.len() >= 2 && etag.starts_with('"') && etag.ends_with('"');
    (is_strong && etag.len() <= ETAG_BYTES_MAX).then(|| etag.to_owned())
}

/// Whether an answer is the rest of the file, from the first missing byte to the end.
fn is_rest(headers: &HeaderMap, from: u64, bytes: u64, etag: &str) -> Result<(), &'static str> {
    let expected = format!("bytes {from}-{}/{bytes}", bytes.saturating_sub(1));
    if text(headers, CONTENT_RANGE) != Some(expected.as_str()) {
        return Err("another range was sent");
    }
    let len = text(headers, CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok());
    if len != Some(bytes - from) {
        return Err("the length of the rest is wrong");
    }
    // A server may leave it out where the condition holds.
    match headers.get(ETAG) {
        Some(found) if found != etag => Err("the file has changed"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_archives() {
        let cases = [
            ("https://archive.example/v2", true),
            ("https://archive.example:8443/v2/", true),
            ("http://127.0.0.1:80/x", true),
            ("http://127.9.9.9", true),
            ("http://localhost:1", true),
            ("http://[::1]:1", true),
            ("http://2130706433/", true),
            ("http://archive.example", false),
            ("http://localhost.example", false),
            ("http://127.0.0.1.example", false),
            ("http://[::ffff:127.0.0.1]", false),
            ("http://10.0.0.1", false),
            ("http://0.0.0.0", false),
            ("ftp://archive.example", false),
            ("file:///etc", false),
            ("https://user:secret@archive.example", false),
            ("https://archive.example/?list", false),
            ("https://archive.example/#x", false),
            ("archive.example", false),
            ("", false),
        ];
        for (url, is_taken) in cases {
            let made = Source::new(url, Path::new("parts"), Pace::default());
            assert_eq!(made.is_ok(), is_taken, "{url}: {:?}", made.err());
        }
        let said = Source::new("https://user:secret@archive.example", Path::new(""), Pace::default()).err();
        assert!(!said.expect("refused").contains("secret"));
        println!("addresses: {} cases", cases.len() + 1);
    }

    #[test]
    fn ranges_of_answers() {
        let headers = |range: &str, len: &str, etag: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, range.parse().expect("a value"));
            headers.insert(CONTENT_LENGTH, len.parse().expect("a value"));
            etag.map(|etag| headers.insert(ETAG, etag.parse().expect("a value")));
            headers
        };
        let same = Some("\"a\"");
        let cases = [
            ("bytes 40-99/100", "60", same, true),
            ("bytes 40-99/100", "60", None, true),
            ("bytes 40-99/100", "60", Some("\"b\""), false),
            ("bytes 40-99/100", "59", same, false),
            ("bytes 40-99/*", "60", same, false),
            ("bytes 0-99/100", "100", same, false),
            ("bytes 41-99/100", "59", same, false),
            ("bytes 40-98/100", "59", same, false),
            ("bytes 40-100/101", "61", same, false),
            ("bytes 99-40/100", "60", same, false),
            ("bytes=40-99/100", "60", same, false),
            ("", "60", same, false),
        ];
        for (range, len, etag, expected) in cases {
            assert_eq!(
                is_rest(&headers(range, len, etag), 40, 100, "\"a\"").is_ok(),
                expected,
                "{range} {len} {etag:?}"
            );
        }
        let etags = [("\"a\"", true), ("\"\"", true), ("W/\"a\"", false), ("a", false), ("\"", false)];
        for (etag, is_strong) in etags {
            assert_eq!(strong_etag(&headers("", "", Some(etag))).is_some(), is_strong, "{etag}");
        }
        assert_eq!(strong_etag(&headers("", "", Some(&format!("\"{}\"", "x".repeat(255))))), None);
        println!("ranges and ETags: {} cases", cases.len() + etags.len() + 1);
    }
}
