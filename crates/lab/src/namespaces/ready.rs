//! When a process that was started is ready.

use super::Namespaces;
use crate::protocol::ProcessId;
use crate::{LabError, Launch, Ready};
use linerate_contract::Event;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Time limit for a server to be ready, where none is given: the slowest system needs a tenth of a second.
pub const READY_DEADLINE: Duration = Duration::from_secs(10);
/// Poll interval of the socket table until a server listens, at least and at most; one poll costs some
/// microseconds. It is this part of the time so far, so that a slow start costs little CPU time.
const READY_POLL: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];
const PART_OF_START: u32 = 50;

impl Namespaces {
    /// `before`: listeners of others.
    pub(super) fn await_ready(
        &mut self,
        launch: &Launch,
        process: ProcessId,
        before: &[SocketAddr],
    ) -> Result<(), LabError> {
        let (begin, within) = (Instant::now(), launch.ready_within.unwrap_or(READY_DEADLINE));
        let deadline = begin + within;
        loop {
            let ready = match launch.ready {
                Ready::Event => {
                    let first = self.running(process).stdout.first();
                    first.is_some_and(|line| matches!(Event::parse(line), Ok(Event::Ready { .. })))
                }
                Ready::Listen | Ready::Datagrams => {
                    let any = |address: &SocketAddr| match launch.port {
                        0 => !before.contains(address),
                        port => address.port() == port,
                    };
                    self.listeners_of(launch.host, launch.ready)?.iter().any(any)
                }
            };
            if ready {
                // What it wrote before.
                let now = Instant::now();
                while self.process_event(now)? {}
                return self.check_running();
            }
            if let Some(status) = self.running(process).ended {
                return Err(self.running(process).failed(&format!("ended before it was ready ({status})")));
            }
            if Instant::now() >= deadline {
                let what = match launch.ready {
                    Ready::Listen | Ready::Datagrams if launch.user.is_some() => "did not listen",
                    _ => "was not ready",
                };
                return Err(self.running(process).failed(&format!("{what} within {within:?}")));
            }
            match launch.ready {
                Ready::Event => {
                    self.process_event(deadline)?;
                }
                // One request for each line would make a system that prints a lot late.
                Ready::Listen | Ready::Datagrams => {
                    let next_poll = Instant::now() + pause(begin.elapsed());
                    while self.process_event(next_poll)? {}
                }
            }
        }
    }
}

/// The time until the next poll of a start that takes as long as this so far.
fn pause(so_far: Duration) -> Duration {
    (so_far / PART_OF_START).clamp(READY_POLL[0], READY_POLL[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_start_is_polled_seldom_and_a_fast_one_at_once() {
        let polls_within = |limit: Duration| {
            let (mut at, mut polls) = (Duration::ZERO, 0);
            while at < limit {
                at += pause(at);
                polls += 1;
            }
            polls
        };
        assert_eq!(polls_within(Duration::from_millis(20)), 20);
        let polls = polls_within(READY_DEADLINE);
        assert!(polls < 500, "{polls} polls");
    }
}
