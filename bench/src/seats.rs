//! The cores of a measurement. Our server and the bare one beside it alternate on the first core that this program may
//! use, and the load runs on the second: a server with more threads gets no larger share of the machine. All threads of
//! a server stay on its core: those that sync, feed and prepare too.
//!
//! P13 and P14 require the same core and P17 one core. P16 and P18 do not require it; they are placed likewise, and the
//! feed, which bare servers lack, takes its share of that core. A server does not poll if it may use only one core, so
//! those of P15 are moved once they serve ([`Seats::seat`]): otherwise the sleeping server would share a core with its
//! load, without wake-ups between cores. Servers of all other scenarios run on any core, as a user's server does.

use crate::reference::Kind;
use crate::report::Report;
use crate::role::Role;
use crate::server::Server;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::path::Path;

/// While it exists this thread, which makes the load, stays on its core.
pub struct Seats {
    /// `None` on a machine with one core: no thread is pinned then.
    servers: Option<usize>,
    /// The cores that this thread was allowed to use.
    before: CpuSet,
}

impl Seats {
    /// The report names the assignment.
    pub fn take(report: &mut Report) -> Seats {
        let before = sched_getaffinity(None).expect("a thread knows its cores");
        let mut allowed = (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core));
        let servers = match (allowed.next(), allowed.next()) {
            (Some(first), Some(second)) => {
                stay_on(second).expect("a core that is allowed");
                report.cores(format!("core {first}: ours and the server beside it, in turns; core {second}: the load"));
                Some(first)
            }
            _ => {
                report.cores("one for all");
                None
            }
        };
        Seats { servers, before }
    }

    /// The server of that configuration, ready to answer.
    pub fn start(&self, config: &Path) -> Server {
        Server::start_as(&self.seated(Role::Server { config: config.to_owned(), has_pulse: false }))
    }

    /// The same beside the building of hours and back-tests ([`crate::beside`]), which stay on the core of the load.
    pub fn start_working(&self, config: &Path, tape: &Path) -> Server {
        let role = self.seated(Role::Server { config: config.to_owned(), has_pulse: false });
        Server::start_as(&Role::Working { tape: tape.to_owned(), role: Box::new(role) })
    }

    /// As [`Server::start_on_pulse`].
    pub fn start_on_pulse(&self, config: &Path) -> Server {
        Server::start_as(&self.seated(Role::Server { config: config.to_owned(), has_pulse: true }))
    }

    /// As [`Server::reference`].
    pub fn reference(&self, kind: Kind, template: Option<&Path>) -> Server {
        Server::spawn(&self.seated(Role::Reference { kind, template: template.map(Path::to_owned) }))
    }

    /// Moves a running server with all its threads to the core of servers.
    pub fn seat(&self, server: &Server) {
        let Some(core) = self.servers else { return };
        for thread in server.threads() {
            sched_setaffinity(Some(thread), &only(core)).expect("a server's thread runs on a core that is allowed");
        }
    }

    fn seated(&self, role: Role) -> Role {
        match self.servers {
            Some(core) => Role::On { core, role: Box::new(role) },
            None => role,
        }
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        sched_setaffinity(None, &self.before).expect("where it was before");
    }
}

/// Keeps this thread, and every thread it starts from now on, on that core.
pub fn stay_on(core: usize) -> io::Result<()> {
    Ok(sched_setaffinity(None, &only(core))?)
}

fn only(core: usize) -> CpuSet {
    let mut only = CpuSet::new();
    only.set(core);
    only
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Size;

    fn cores() -> Vec<usize> {
        let allowed = sched_getaffinity(None).expect("a thread knows its cores");
        (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect()
    }

    #[test]
    fn the_load_stays_on_the_second_core_and_servers_on_the_first() {
        let before = cores();
        let mut report = Report::new("any", "why?", Size::Small, false);
        let seats = Seats::take(&mut report);
        match before[..] {
            [first, second, ..] => {
                assert_eq!(cores(), [second]);
                assert_eq!(seats.seated(Role::Busy), Role::On { core: first, role: Box::new(Role::Busy) });
                let heirs = std::thread::spawn(move || stay_on(first).map(|()| cores())).join().expect("it ends");
                assert_eq!(heirs.expect("a core that is allowed"), [first], "a child leaves the load's core");
                assert!(report.to_string().contains(&format!("core {second}: the load")), "{report}");
            }
            _ => assert_eq!(seats.seated(Role::Busy), Role::Busy),
        }
        drop(seats);
        assert_eq!(cores(), before, "what follows runs anywhere");
    }
}
