//! A server in a process of its own: another instance of this program, and the system's figures about it.

use crate::load::Load;
use crate::pulse::{APPLIED, Beats};
use crate::reference::Kind;
use crate::role::Role;
use gateway::config::Config;
use rustix::thread::Pid;
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tools::machine;

const START_WITHIN: Duration = Duration::from_secs(30);
const RESTS_WITHIN: Duration = Duration::from_secs(30);
/// What a server prints when it listens, before its address.
pub const LISTENS: &str = "on http://";

/// Serves until it is killed; the child process runs this.
pub fn serve(config: &Path) -> Result<(), Box<dyn std::error::Error>> {
    Ok(gateway::boot::serve(Config::load(Some(config), [])?)?)
}

/// Killed when dropped.
pub struct Server {
    child: Child,
    /// The pipe for its requests.
    stdin: ChildStdin,
    /// The number of changes that its feed has applied, each time that the pulse is told to rest.
    applied: Receiver<u64>,
    pub address: SocketAddr,
}

impl Server {
    /// The server of that configuration on the venue under remote control ([`crate::pulse`]), ready to answer.
    pub fn start_on_pulse(config: &Path) -> Server {
        Server::start_as(&Role::Server { config: config.to_owned(), has_pulse: true })
    }

    /// A bare reference server ([`crate::reference`]).
    pub fn reference(kind: Kind, template: Option<&Path>) -> Server {
        Server::spawn(&Role::Reference { kind, template: template.map(Path::to_owned) })
    }

    /// Our server in that role, ready to answer.
    pub fn start_as(role: &Role) -> Server {
        Server::spawn(role).when_ready()
    }

    /// A process in that role that prints where it listens.
    pub fn spawn(role: &Role) -> Server {
        let mut command = role.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program can be started");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe was requested")).lines();
        let address = lines.find_map(|line| line.ok()?.split_once(LISTENS)?.1.trim().parse().ok());
        let (sender, applied) = channel();
        // Its output is always read, so that it never blocks on us; all but one value is dropped.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(count) = line.strip_prefix(APPLIED).and_then(|count| count.parse().ok()) {
                    // The receiver may be gone.
                    let _ = sender.send(count);
                }
            }
        });
        let stdin = child.stdin.take().expect("a pipe was requested");
        Server { child, stdin, applied, address: address.expect("a server that starts prints where it listens") }
    }

    fn when_ready(self) -> Server {
        let begun = Instant::now();
        let mut load = Load::connect(self.address, [()]).expect("the server listens");
        let ready = |(): &mut (), request: &mut Vec<u8>| {
            request.extend_from_slice(b"GET /v1/health/ready HTTP/1.1\r\nHost: bench\r\n\r\n");
        };
        while !load.run(1, 1, None, ready).is_ok_and(|reached| reached.statuses.contains_key(&200)) {
            assert!(begun.elapsed() < START_WITHIN, "the server is ready in time");
            std::thread::sleep(Duration::from_millis(5));
        }
        self
    }

    /// Stops the process (SIGSTOP): it uses no processor until it continues.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    pub fn resume(&self) {
        self.signal("-CONT");
    }

    /// Runs `work` while this server is stopped, so that it takes nothing of a shared core.
    pub fn paused<T>(&self, work: impl FnOnce() -> T) -> T {
        self.pause();
        let made = work();
        self.resume();
        made
    }

    /// (Through the kill program: sending a signal needs `unsafe` or a package.)
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(name).arg(self.child.id().to_string()).status();
        assert!(sent.expect("signals can be sent").success(), "the server runs");
    }

    /// Sends one line to it.
    pub fn tell(&mut self, line: impl std::fmt::Display) {
        let sent = self.stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.stdin.flush());
        sent.expect("the server reads its requests");
    }

    /// Stops the pulse; returns the number of changes that the feed has applied to its books since the last time.
    pub fn rest(&mut self) -> u64 {
        self.tell(Beats::REST);
        self.applied.recv_timeout(RESTS_WITHIN).expect("the feed reads its requests")
    }

    /// The ids of its threads.
    pub fn threads(&self) -> Vec<Pid> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        tasks.flatten().filter_map(|task| Pid::from_raw(task.file_name().to_str()?.parse().ok()?)).collect()
    }

    /// Processor time of all its threads so far, user and system, in hundredths of a second.
    pub fn ticks(&self) -> u64 {
        machine::ticks(self.child.id()).unwrap_or_default()
    }

    /// Bytes of its resident anonymous memory: without the pages of the log.
    pub fn anonymous_bytes(&self) -> u64 {
        machine::anonymous_bytes(self.child.id()).expect("it runs")
    }

    /// Requests a clean stop, and waits for it.
    pub fn terminate(&mut self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(asked.is_ok_and(|status| status.success()), "a signal reaches it");
        let ended = self.child.wait().expect("a child can be waited for");
        assert!(ended.success(), "a clean stop: {ended}");
    }

    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Length of one tick of [`Server::ticks`].
pub const TICK_MICROS: f64 = 1e6 / machine::TICKS_PER_SECOND;
