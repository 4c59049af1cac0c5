//! What the kernel knows about sockets and threads: bytes that were not read, bytes that the peer has not acknowledged,
//! and whether a thread sleeps.

use std::fs::{self, File};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt as _;

/// Bytes of a `stat` file that hold the state of its thread; a name has at most 16.
const STAT_BYTES: usize = 128;
/// Processes of a command that are looked at.
const PROCESSES_MAX: usize = 256;

/// Whether bytes have arrived that were not read.
pub(super) fn has_unread(socket: BorrowedFd<'_>) -> bool {
    rustix::io::ioctl_fionread(socket).is_ok_and(|bytes| bytes > 0)
}

/// The number under which the kernel lists a socket.
pub(super) fn inode(socket: BorrowedFd<'_>) -> Option<u64> {
    rustix::fs::fstat(socket).ok().map(|stat| stat.st_ino)
}

/// Whether one of these sockets has sent bytes that its peer has not acknowledged (`SIOCOUTQ`, as the kernel's list of
/// connections shows it).
pub(super) fn has_unacknowledged(inodes: &[u64]) -> bool {
    let lists = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    lists.iter().filter_map(|list| fs::read_to_string(list).ok()).any(|list| is_waiting_in(&list, inodes))
}

fn is_waiting_in(list: &str, inodes: &[u64]) -> bool {
    list.lines().skip(1).any(|line| {
        let mut fields = line.split_ascii_whitespace();
        // sl, local, remote, state, tx:rx, timer, retransmits, user, timeout, inode
        let queues = fields.nth(4);
        let inode = fields.nth(4).and_then(|inode| inode.parse().ok());
        let unsent = queues.and_then(|queues| queues.split_once(':')).map(|(sent, _)| sent.bytes().any(|b| b != b'0'));
        unsent == Some(true) && inode.is_some_and(|inode| inodes.contains(&inode))
    })
}

/// A thread of this process.
#[derive(Debug)]
pub(super) struct Thread(File);

impl Thread {
    /// The calling thread.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn current() -> io::Result<Thread> {
        let id = rustix::thread::gettid().as_raw_nonzero();
        File::open(format!("/proc/self/task/{id}/stat")).map(Thread)
    }

    /// Whether it waits for an event.
    pub(super) fn sleeps(&self) -> bool {
        let mut stat = [0; STAT_BYTES];
        let read = self.0.read_at(&mut stat, 0).unwrap_or(0);
        state(&stat[..read]) == Some(b'S')
    }
}

/// The state in the text of a `stat` file. The name before it may contain any bytes.
fn state(stat: &[u8]) -> Option<u8> {
    let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_ends + 2).copied()
}

/// Whether a thread of this process, or of a process that it started, runs or waits for a disk.
pub fn has_running_thread(process: u32) -> bool {
    let mut processes = vec![process];
    let mut at = 0;
    while let Some(process) = processes.get(at).copied().filter(|_| at < PROCESSES_MAX) {
        at += 1;
        let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for thread in threads.flatten() {
            let folder = thread.path();
            if fs::read(folder.join("stat")).is_ok_and(|stat| matches!(state(&stat), Some(b'R' | b'D'))) {
                return true;
            }
            let children = fs::read_to_string(folder.join("children")).unwrap_or_default();
            processes.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    false
}

/// Whether a process has ended, also if it was not waited for yet.
pub(super) fn has_ended(process: u32) -> bool {
    let stat = fs::read(format!("/proc/{process}/stat")).unwrap_or_default();
    matches!(state(&stat), None | Some(b'Z' | b'X'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;

    #[test]
    fn the_state_follows_the_name() {
        let rows: &[(&str, Option<u8>)] = &[
            ("12 (sync) S 1 2", Some(b'S')),
            ("12 (a) R b) R 1 2", Some(b'R')),
            ("12 () D", Some(b'D')),
            ("12 (io-1)", None),
            ("12 (io-1) ", None),
            ("12 io S", None),
            ("", None),
        ];
        for (stat, expected) in rows {
            assert_eq!(state(stat.as_bytes()), *expected, "{stat:?}");
        }
        println!("states of threads: {} cases", rows.len());
    }

    #[test]
    fn bytes_wait_in_a_socket_until_they_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (mut socket, _) = listener.accept().expect("a peer");
        assert!(!has_unread(socket.as_fd()));
        peer.write_all(b"ab").expect("it is open");
        assert!(has_unread(socket.as_fd()));
        socket.read_exact(&mut [0; 1]).expect("a byte");
        assert!(has_unread(socket.as_fd()));
        socket.read_exact(&mut [0; 1]).expect("a byte");
        assert!(!has_unread(socket.as_fd()));
        // More than the buffers of both ends hold: the peer does not read.
        let own = [inode(socket.as_fd()).expect("an open file")];
        socket.set_nonblocking(true).expect("an open socket");
        while socket.write(&[0; 1 << 16]).is_ok() {}
        assert!(has_unacknowledged(&own));
        assert!(!has_unacknowledged(&[own[0].wrapping_add(1 << 40)]));
        drop(listener);
    }

    #[test]
    fn the_list_of_connections_is_read() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let line = |queues: &str, inode: &str| {
            format!("   0: 0100007F:1F90 0100007F:C350 01 {queues} 00:00000000 00000000  1000        0 {inode} 1 0\n")
        };
        let rows = [
            (line("00000010:00000000", "77"), true),
            (line("00000000:00000010", "77"), false),
            (line("00000010:00000000", "78"), false),
            (line("00000010", "77"), false),
            (line("00000010:00000000", "x"), false),
            ("   0:\n".to_owned(), false),
            (line("00000000:00000000", "77") + &line("10000000:00000000", "77"), true),
        ];
        for (lines, expected) in &rows {
            assert_eq!(is_waiting_in(&format!("{head}{lines}"), &[5, 77]), *expected, "{lines}");
        }
        println!("lists of connections: {} cases", rows.len());
    }

    #[test]
    fn a_thread_that_waits_sleeps() {
        let (begin, begins) = mpsc::channel::<()>();
        let (show, shown) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            show.send(Thread::current().expect("a thread has a file")).expect("it is awaited");
            begins.recv()
        });
        let other = shown.recv().expect("it is shown");
        while !other.sleeps() {
            std::thread::yield_now();
        }
        assert!(!Thread::current().expect("a thread has a file").sleeps(), "this one runs");
        begin.send(()).expect("it waits");
        thread.join().expect("it ends").expect("it was sent");
        assert!(!other.sleeps(), "it has ended");
    }

    #[test]
    fn processes_of_a_command_are_looked_at() {
        // The shell waits for a child.
        let spins = "sh -c 'while :; do :; done'; exit 0";
        let sleeps = "sh -c 'read line'; exit 0";
        for (command, runs) in [(spins, true), (sleeps, false)] {
            let mut shell = Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn().expect("a shell");
            while has_running_thread(shell.id()) != runs {
                std::thread::yield_now();
            }
            assert!(!has_ended(shell.id()));
            let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.id())).unwrap_or_default();
            let _ = shell.kill();
            while !has_ended(shell.id()) {
                std::thread::yield_now();
            }
            let _ = shell.wait();
            for child in children.split_ascii_whitespace() {
                let _ = Command::new("kill").args(["-KILL", child]).status();
            }
            assert!(!has_running_thread(shell.id()) && has_ended(shell.id()), "it has ended");
        }
    }
}
