//! Which core a server is measured on. Ours and the bare one beside it get the first core that this program may use, in
//! turns, and the load the second: whoever starts more threads gets no more of the machine for it. All threads of a
//! server stay there: those that sync, feed and prepare too.
//!
//! P13 and P14 ask for the same core and P17 for one core (performance.md). P16 and P18 do not say it; they are seated
//! likewise, and the feed, which bare servers have not, takes its part of that core. A server does not spin where it
//! may use one core only, so those of P15 take their seats once they serve ([`Seats::seat`]): elsewhere the one that
//! sleeps shares a core with its load, and nobody has to be woken. Servers of all other scenarios run wherever the system
//! puts them, as a user's does.

use crate::reference::Kind;
use crate::report::Report;
use crate::role::Role;
use crate::server::Server;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::path::Path;

/// While it lives this thread, which makes the load, stays on its core.
pub struct Seats {
    /// `None` where there is one core only: nobody is seated then.
    servers: Option<usize>,
    /// Where this thread was allowed to run.
    before: CpuSet,
}

impl Seats {
    /// The report says who is where.
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

    /// As [`Server::start_on_pulse`].
    pub fn start_on_pulse(&self, config: &Path) -> Server {
        Server::start_as(&self.seated(Role::Server { config: config.to_owned(), has_pulse: true }))
    }

    /// As [`Server::reference`].
    pub fn reference(&self, kind: Kind, template: Option<&Path>) -> Server {
        Server::spawn(&self.seated(Role::Reference { kind, template: template.map(Path::to_owned) }))
    }

    /// Has a server that runs already stay on the core of servers, with all its threads.
    pub fn seat(&self, server: &Server) {
        let Some(core) = self.servers else { return };
        for thread in server.threads() {
            sched_setaffinity(Some(thread), &only(core)).expect("a thread of ours on a core that is allowed");
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

/// Keeps this thread, and all that it starts from now on, on that core.
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
