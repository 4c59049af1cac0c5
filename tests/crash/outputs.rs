//! Standard output and standard error that are blocked or closed: orders continue, and lost lines are counted.

use std::fs::{self, File};
use std::io::{Read, Write, pipe};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use tests::cases::Cases;
use tests::eventually;
use tests::http::{Client, Request};
use tests::json::text;
use tests::server::signal;
use tests::world::{World, market};

/// Lines that the start writes to its log: one for each damaged file of the price history. More than the log's queue
/// holds.
const DAMAGED_FILES: usize = 1_500;

/// A loopback address that was free just before: a server whose output is lost cannot report its own.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

/// Killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(mut serve: Command, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Running {
        let serve = serve.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        Running(serve.spawn().expect("papertape can be started"))
    }

    fn ends_well(mut self) {
        signal(self.0.id(), "TERM");
        let status = eventually("papertape to end", || self.0.try_wait().expect("a child can be waited for"));
        assert!(status.success(), "{status}");
    }
}

fn closed_pipe() -> Stdio {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

fn full_disk() -> Stdio {
    File::options().write(true).open("/dev/full").expect("Linux has it").into()
}

/// A full pipe whose reader does not read. (The filling ends when the reader is closed.)
fn stalled_pipe() -> (std::io::PipeReader, Stdio) {
    let (reader, writer) = pipe().expect("a pipe");
    let mut filler = writer.try_clone().expect("a copy");
    std::thread::spawn(move || {
        let _ = filler.write_all(&[b'.'; 1 << 20]);
    });
    (reader, writer.into())
}

#[test]
fn a_log_that_cannot_be_written_stops_no_order() {
    let cases = Cases::of("blocked outputs");
    let mut world = World::start(1);
    world.server.kill();
    let history = world.place.data().join("history");
    let order = market(&world.markets.vote, "BUY", "0.65", "5");
    for case in ["full disk", "closed pipe", "stalled pipe", "stalled pipe that is read later"] {
        // A start warns of each of them once.
        for hour in 0..DAMAGED_FILES {
            fs::write(history.join(format!("minutes-{}", 400_000 + hour)), b"damaged").expect("a file");
        }
        let (address, admin) = (free_address(), free_address());
        world.place.set("server", "listen", &format!("\"{address}\""));
        world.place.set("admin", "listen", &format!("\"{admin}\""));
        let mut readers = Vec::new();
        let mut stalled = || {
            let (reader, stdio) = stalled_pipe();
            readers.push(reader);
            stdio
        };
        let (stdout, stderr) = match case {
            "full disk" => (full_disk(), full_disk()),
            "closed pipe" => (closed_pipe(), closed_pipe()),
            _ => (stalled(), stalled()),
        };
        let running = Running::start(world.place.serve_command(), stdout, stderr);
        let mut client = Client::with_key(address, &world.users[0].key);
        eventually("the server to be ready", || {
            let answer = client.call(&Request::get("/v1/health/ready"));
            answer.is_ok_and(|answer| answer.status == 200).then_some(())
        });
        for _ in 0..3 {
            assert_eq!(text(&client.post("/v1/orders", &order).expect(200), "/status"), "FILLED", "{case}");
        }
        // Without any writes all lines are lost; without a reader, those that the queue does not hold.
        let least = if case.starts_with("stalled") { DAMAGED_FILES as u64 - 1_100 } else { DAMAGED_FILES as u64 };
        eventually(&format!("{case}: {least} lost lines to be counted"), || {
            let metrics = Client::new(admin).get("/metrics").lossy();
            let line = metrics.lines().find(|line| line.starts_with("papertape_log_lines_lost_total "))?.to_owned();
            line.rsplit(' ').next()?.parse::<u64>().ok().filter(|lost| *lost >= least)
        });
        if case.ends_with("read later") {
            let readers: Vec<_> = readers
                .into_iter()
                .map(|mut reader| {
                    std::thread::spawn(move || {
                        let mut bytes = Vec::new();
                        reader.read_to_end(&mut bytes).expect("it can be read");
                        String::from_utf8_lossy(&bytes).into_owned()
                    })
                })
                .collect();
            std::thread::sleep(std::time::Duration::from_secs(2));
            running.ends_well();
            let texts: Vec<String> = readers.into_iter().map(|reader| reader.join().expect("an end")).collect();
            assert!(texts[1].contains("lines before this one are lost"), "the loss is reported: {}", texts[1].len());
        } else {
            running.ends_well();
            drop(readers);
        }
        cases.one();
    }
}
