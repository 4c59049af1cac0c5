//! Precise sleeps: the runtime's own timers have a resolution of a millisecond, which would be visible in every latency
//! that counts from a due time.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;

/// A timerfd of the system, read like a pipe: it has bytes once it has expired.
pub struct Pace(Receiver);

impl Pace {
    pub fn new() -> io::Result<Pace> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // Unchecked: it requires a descriptor that is readable and does not block, and this is one.
        Ok(Pace(Receiver::from_owned_fd_unchecked(timer)?))
    }

    /// Returns after this duration.
    pub async fn rest(&self, time: Duration) -> io::Result<()> {
        let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A duration of zero would disarm the timer.
        let time = time.max(Duration::from_nanos(1));
        let value = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let timer = Itimerspec { it_interval: nothing, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &timer)?;
        loop {
            self.0.readable().await?;
            match self.0.try_read(&mut [0; 8]) {
                // It expired in an earlier sleep that was cancelled.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                rung => return rung.map(|_| ()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn it_never_returns_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let times = [0, 1, 300, 2_500, 20_000].map(Duration::from_micros);
        runtime.block_on(async {
            let pace = Pace::new().expect("a timer");
            for time in times {
                let begun = Instant::now();
                pace.rest(time).await.expect("it expires");
                assert!(begun.elapsed() >= time, "{time:?}");
            }
        });
        println!("rests: {} cases", times.len());
    }
}
