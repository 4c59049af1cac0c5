//! The real process: its directory, start, output and end.

use crate::binary::{command, run, run_well};
use crate::http::Client;
use crate::token::SECRET;
use crate::{PATIENCE, eventually};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The directory of one server: data directory, configuration, and other files of a test. Removed at the end.
pub struct ServerDir {
    root: TempDir,
    settings: BTreeMap<String, BTreeMap<String, String>>,
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    address: SocketAddr,
    output: Arc<Transcript>,
}

/// A user made by `papertape seed`.
#[derive(Clone, Debug)]
pub struct User {
    pub id: i64,
    pub key: String,
}

/// The output of a process so far, both streams in the order of arrival.
#[derive(Default)]
struct Transcript {
    state: Mutex<TranscriptState>,
    changed: Condvar,
}

#[derive(Default)]
struct TranscriptState {
    lines: Vec<String>,
    streams_ended: usize,
}

impl ServerDir {
    /// An empty place with settings that keep limits out of the way, the network on loopback, and segments small: a
    /// start writes three of them full of zeros.
    pub fn new() -> ServerDir {
        let root = TempDir::with_prefix("papertape-test-").expect("a temporary directory can be made");
        let mut place = ServerDir { root, settings: BTreeMap::new() };
        place.set("server", "listen", "\"127.0.0.1:0\"");
        place.set("auth", "jwt_secret", &format!("{SECRET:?}"));
        // Few changes, so that more of the machine is left for the test.
        place.set("venue", "liveliness", "1");
        place.set("journal", "segment_bytes", "2097152");
        // Nothing is sent to a host of the world.
        place.set("integrations", "chat_hosts", "[\"chat.invalid\"]");
        for tier in ["free", "pro", "pro_plus", "enterprise"] {
            place.set(&format!("limits.tiers.{tier}"), "requests_per_second", "100000");
            place.set(&format!("limits.tiers.{tier}"), "requests_per_minute", "1000000");
        }
        place
    }

    /// One setting as TOML writes its value; a later one replaces an earlier one.
    pub fn set(&mut self, section: &str, key: &str, value: &str) -> &mut ServerDir {
        self.settings.entry(section.to_string()).or_default().insert(key.to_string(), value.to_string());
        self
    }

    /// Server time of the next start and of every running server of this place: this many seconds ahead of the wall
    /// clock. It never goes back.
    pub fn clock_ahead(&mut self, secs: u64) -> &mut ServerDir {
        let file = self.root().join("clock-ahead");
        let written = self.root().join("clock-ahead.new");
        fs::write(&written, secs.to_string()).expect("the clock's file can be written");
        fs::rename(written, &file).expect("the clock's file can be put in place");
        self.set("server", "clock_ahead_file", &format!("{file:?}"))
    }

    pub fn unset(&mut self, section: &str, key: &str) -> &mut ServerDir {
        self.settings.entry(section.to_string()).or_default().remove(key);
        self
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// The configuration file, written from the current settings.
    pub fn config(&self) -> PathBuf {
        let mut text = String::new();
        for (section, settings) in &self.settings {
            text.push_str(&format!("[{section}]\n"));
            for (key, value) in settings {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
        let path = self.root.path().join("papertape.toml");
        fs::write(&path, text).expect("the configuration can be written");
        path
    }

    /// `papertape seed` into the data directory of the stopped server.
    pub fn seed(&self, users: usize, tier: &str, balance: &str) -> Vec<User> {
        let out = self.root.path().join(format!("users-{tier}-{}.jsonl", fs::read_dir(self.root()).unwrap().count()));
        run_well([
            OsString::from("seed"),
            "--config".into(),
            self.config().into(),
            "--data-dir".into(),
            self.data().into(),
            "--users".into(),
            users.to_string().into(),
            "--tier".into(),
            tier.into(),
            "--balance".into(),
            balance.into(),
            "--out".into(),
            out.clone().into(),
        ]);
        let text = fs::read_to_string(&out).expect("seed writes its file");
        let made: Vec<User> = text
            .lines()
            .map(|line| {
                let row: Value = serde_json::from_str(line).expect("seed writes JSON lines");
                User {
                    id: row["user_id"].as_i64().expect("a user id"),
                    key: row["api_key"].as_str().expect("a key").to_string(),
                }
            })
            .collect();
        assert_eq!(made.len(), users, "seed makes as many users as requested");
        made
    }

    /// `papertape log VERB` on the data directory.
    pub fn log(&self, verb: &str) -> Output {
        log_of(&self.data(), verb)
    }

    /// The state digest that `papertape log digest` prints for a directory.
    pub fn digest(&self) -> String {
        digest_of(&self.data())
    }

    /// The same without snapshots: a replay of the whole log.
    pub fn digest_from_nothing(&self) -> String {
        digest_in(&run_well([
            OsString::from("log"),
            "digest".into(),
            "--from-nothing".into(),
            self.data().into_os_string(),
        ]))
    }

    /// The command that serves this place.
    pub fn serve_command(&self) -> Command {
        let mut serve = command();
        serve.arg("serve").arg("--config").arg(self.config()).arg("--data-dir").arg(self.data());
        serve.current_dir(self.root());
        serve
    }

    /// Starts the server and waits until it answers.
    #[track_caller]
    pub fn start(&self) -> Server {
        self.start_with(&[], &[])
    }

    /// Starts with more arguments and environment.
    #[track_caller]
    pub fn start_with(&self, args: &[&str], env: &[(&str, &str)]) -> Server {
        Server::started(self.spawn_with(args, env))
    }

    /// Starts the process without waiting.
    pub fn spawn_with(&self, args: &[&str], env: &[(&str, &str)]) -> Starting {
        let mut serve = self.serve_command();
        serve.args(args).envs(env.iter().copied());
        Starting::spawn(serve)
    }
}

impl Default for ServerDir {
    fn default() -> Self {
        ServerDir::new()
    }
}

/// `papertape log VERB DIR`.
pub fn log_of(dir: &Path, verb: &str) -> Output {
    run([OsString::from("log"), verb.into(), dir.into()])
}

/// The 64 hex digits that `papertape log digest DIR` prints.
pub fn digest_of(dir: &Path) -> String {
    digest_in(&run_well([OsString::from("log"), "digest".into(), dir.into()]))
}

fn digest_in(text: &str) -> String {
    text.split(|c: char| !c.is_ascii_hexdigit())
        .find(|word| word.len() == 64)
        .unwrap_or_else(|| panic!("no digest in {text:?}"))
        .to_string()
}

/// A started process that may not be ready, or never become so.
pub struct Starting {
    child: Child,
    output: Arc<Transcript>,
}

impl Starting {
    pub fn spawn(mut serve: Command) -> Starting {
        let mut child = serve
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("papertape can be started");
        let output = Arc::new(Transcript::default());
        listen(&output, child.stdout.take().expect("a pipe was requested"));
        listen(&output, child.stderr.take().expect("a pipe was requested"));
        Starting { child, output }
    }

    /// Waits for the process to end on its own; returns its status and output.
    #[track_caller]
    pub fn ended(mut self) -> (ExitStatus, String) {
        let status =
            eventually("papertape to end on its own", || self.child.try_wait().expect("a child can be waited for"));
        self.output.wait_for_end();
        (status, self.output.all())
    }

    /// SIGKILL, in any state.
    pub fn kill(mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.output.wait_for_end();
        self.output.all()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server is ready; `Err` with its output when the process ends instead.
    pub fn ready(self) -> Result<Server, String> {
        let server = self.listening()?;
        server.wait_ready();
        Ok(server)
    }

    /// Waits for the banner's address alone: a server without a market is not ready.
    pub fn listening(mut self) -> Result<Server, String> {
        let start = Instant::now();
        loop {
            if let Some(address) = self.output.find(address_in) {
                return Ok(Server { child: self.child, address, output: self.output });
            }
            if self.child.try_wait().expect("a child can be waited for").is_some() {
                self.output.wait_for_end();
                if self.output.find(address_in).is_none() {
                    return Err(self.output.all());
                }
            }
            if start.elapsed() > PATIENCE {
                let _ = self.child.kill();
                return Err(format!("no banner in time; the output:\n{}", self.output.all()));
            }
            self.output.wait_for_more();
        }
    }
}

impl Server {
    #[track_caller]
    fn started(starting: Starting) -> Server {
        starting.ready().unwrap_or_else(|output| panic!("papertape did not start; the output:\n{output}"))
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client without credentials.
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    pub fn with_key(&self, key: &str) -> Client {
        Client::with_key(self.address, key)
    }

    pub fn with_token(&self, token: &str) -> Client {
        Client::with_token(self.address, token)
    }

    /// The address of the metrics listener, if there is one.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.output.find(|line| if line.ends_with("/metrics") { address_in(line) } else { None })
    }

    /// A figure of the metrics: the value of the line with this name and these labels. `admin.listen` must be set.
    #[track_caller]
    pub fn figure(&self, line: &str) -> u64 {
        let admin = self.admin().expect("a listener for monitors");
        let text = Client::new(admin).get("/metrics").text().to_owned();
        let value = text.lines().find_map(|known| known.strip_prefix(line)?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no {line} in\n{text}"))
    }

    /// The demo key of a first start.
    pub fn demo_key(&self) -> Option<String> {
        self.output.find(key_in)
    }

    /// The line about the recovery.
    pub fn recovered(&self) -> Option<String> {
        self.output.find(|line| line.to_lowercase().contains("recovered").then(|| line.to_string()))
    }

    /// Its output so far.
    pub fn output(&self) -> String {
        self.output.all()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM, without waiting. (Through the shell: sending a signal needs `unsafe` or a package.)
    pub fn terminate(&self) {
        signal(self.pid(), "TERM");
    }

    /// Waits for the end of a process that received a signal; returns its status and output.
    #[track_caller]
    pub fn ended(mut self) -> (ExitStatus, String) {
        let status = eventually("papertape to end", || self.child.try_wait().expect("a child can be waited for"));
        self.output.wait_for_end();
        (status, self.output.all())
    }

    /// Whether the process has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// SIGTERM and wait: a clean stop with exit code 0.
    #[track_caller]
    pub fn stop(self) -> String {
        self.terminate();
        let (status, output) = self.ended();
        assert!(status.success(), "SIGTERM must end with 0, not {status}; the output:\n{output}");
        output
    }

    fn wait_ready(&self) {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let answer = self.client().call(&crate::http::Request::get("/v1/health/ready"));
            if answer.is_ok_and(|answer| answer.status == 200) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // The test checks whether the server is ready: without any market it may never be.
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to a process that the test has started.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status();
    assert!(sent.expect("sh can be run").success(), "signal {name} to {pid}");
}

impl Transcript {
    fn find<T>(&self, wanted: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.state.lock().unwrap().lines.iter().find_map(|line| wanted(line))
    }

    fn all(&self) -> String {
        self.state.lock().unwrap().lines.join("\n")
    }

    fn wait_for_more(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_timeout(state, Duration::from_millis(20)).unwrap());
    }

    fn wait_for_end(&self) {
        let mut state = self.state.lock().unwrap();
        while state.streams_ended < 2 {
            state = self.changed.wait(state).unwrap();
        }
    }
}

fn listen(transcript: &Arc<Transcript>, stream: impl Read + Send + 'static) {
    let transcript = Arc::clone(transcript);
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        loop {
            // Lines that were written together become visible together: with the address, the whole banner is there.
            let (mut lines, mut line) = (Vec::new(), Vec::new());
            while lines.is_empty() || !stream.buffer().is_empty() {
                line.clear();
                match stream.read_until(b'\n', &mut line) {
                    Ok(bytes) if bytes > 0 => lines.push(String::from_utf8_lossy(&line).trim_end().to_string()),
                    _ => break,
                }
            }
            if lines.is_empty() {
                break;
            }
            transcript.state.lock().unwrap().lines.extend(lines);
            transcript.changed.notify_all();
        }
        transcript.state.lock().unwrap().streams_ended += 1;
        transcript.changed.notify_all();
    });
}

/// The loopback address with a port in a line.
fn address_in(line: &str) -> Option<SocketAddr> {
    let start = line.find("127.0.0.1:")?;
    let rest = &line[start..];
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':')).unwrap_or(rest.len());
    rest[..end].trim_end_matches(['.', ':']).parse().ok().filter(|address: &SocketAddr| address.port() != 0)
}

/// The raw key in a line.
fn key_in(line: &str) -> Option<String> {
    let start = line.find("svc_live_")?;
    let key: String = line[start..].chars().take(73).collect();
    (key.len() == 73 && key[9..].bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::{address_in, key_in};

    #[test]
    fn the_banner_is_read() {
        let key = format!("svc_live_{}", "0a".repeat(32));
        assert_eq!(key_in(&format!("demo key   {key}  (once)")), Some(key.clone()));
        assert_eq!(key_in("svc_live_short"), None);
        let rows = [
            ("papertape listens on http://127.0.0.1:8080", Some(8080)),
            ("address 127.0.0.1:45011, data …", Some(45011)),
            ("listen = 127.0.0.1:0", None),
            ("nothing", None),
        ];
        for (line, port) in rows {
            assert_eq!(address_in(line).map(|address| address.port()), port, "{line}");
        }
        println!("banner: {} cases", rows.len() + 2);
    }
}
