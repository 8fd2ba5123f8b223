//! The channel to the agent: a response to each request, with events of processes in between.

use crate::LabError;
use crate::agent::link::BEAT;
use crate::protocol::{Message, Request};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The agent responds within milliseconds, on an overloaded machine within seconds.
const RESPONSE_DEADLINE: Duration = Duration::from_secs(20);

/// linerate's end of the channel.
#[derive(Debug)]
pub(super) struct Channel {
    socket: UnixStream,
    /// Bytes that are no complete message yet, or that follow one.
    partial: Vec<u8>,
    /// How many of them belong to messages that were taken, and how many contain no end of a later one.
    taken: usize,
    scanned: usize,
    events: VecDeque<Message>,
    interrupted: Arc<AtomicBool>,
    /// So that no empty line comes inside of a request.
    writing: Arc<Mutex<()>>,
}

impl Channel {
    pub(super) fn new(socket: UnixStream, interrupted: Arc<AtomicBool>) -> Self {
        let (partial, events) = (Vec::new(), VecDeque::new());
        Self { socket, partial, taken: 0, scanned: 0, events, interrupted, writing: Arc::default() }
    }

    /// A channel over a network that may be cut: an empty line each second, until it is closed.
    pub(super) fn with_heartbeat(socket: UnixStream, interrupted: Arc<AtomicBool>) -> Result<Self, LabError> {
        let mut own = socket.try_clone().map_err(|e| LabError::Lost(format!("a channel: {e}")))?;
        let channel = Self::new(socket, interrupted);
        let writing = channel.writing.clone();
        let beat = move || -> Result<(), ()> {
            let _lock = writing.lock().map_err(|_| ())?;
            own.write_all(b"\n").map_err(|_| ())
        };
        std::thread::spawn(move || {
            let mut beat = beat;
            while beat().is_ok() {
                std::thread::sleep(BEAT);
            }
        });
        Ok(channel)
    }

    /// Sends a request and waits for its response; `Err(System)` if the agent refuses it.
    pub(super) fn request(&mut self, request: &Request) -> Result<Message, LabError> {
        let mut line = serde_json::to_string(request).expect("requests have string keys only");
        line.push('\n');
        let lock = self.writing.lock();
        let written = self.socket.write_all(line.as_bytes());
        drop(lock);
        written.map_err(|e| LabError::Lost(format!("the lab has ended: {e}")))?;
        self.response()
    }

    /// Waits for the next response.
    pub(super) fn response(&mut self) -> Result<Message, LabError> {
        let deadline = Instant::now() + RESPONSE_DEADLINE;
        loop {
            match self.receive(deadline)? {
                None => {
                    return Err(LabError::Lost(format!(
                        "no response from the lab agent within {RESPONSE_DEADLINE:?}"
                    )));
                }
                Some(Message::Refused { reason }) => return Err(LabError::system(reason)),
                Some(Message::Lacking { reason }) => return Err(LabError::Unsupported(reason)),
                Some(message @ (Message::Output { .. } | Message::Exited { .. })) => {
                    self.events.push_back(message)
                }
                Some(response) => return Ok(response),
            }
        }
    }

    /// The next message; `None` at the deadline.
    fn receive(&mut self, deadline: Instant) -> Result<Option<Message>, LabError> {
        loop {
            if let Some(length) = self.partial[self.scanned..].iter().position(|b| *b == b'\n') {
                let end = self.scanned + length;
                let line = &self.partial[self.taken..end];
                (self.taken, self.scanned) = (end + 1, end + 1);
                if line.is_empty() {
                    continue;
                }
                return serde_json::from_slice(line)
                    .map(Some)
                    .map_err(|e| LabError::Lost(format!("invalid message from the lab agent: {e}")));
            }
            self.partial.drain(..self.taken);
            (self.taken, self.scanned) = (0, self.partial.len());
            if !self.wait(deadline)? {
                return Ok(None);
            }
            let mut chunk = [0; 64 << 10];
            match self.socket.read(&mut chunk) {
                Ok(0) => return Err(LabError::Lost("the lab has ended: its agent exited".into())),
                Ok(n) => self.partial.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(LabError::Lost(format!("the lab has ended: {e}"))),
            }
        }
    }

    /// Waits until the socket is readable (true) or the deadline passes (false).
    fn wait(&self, deadline: Instant) -> Result<bool, LabError> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up to a millisecond. A signal ends the wait early; for one that arrives just before
            // poll(2), the wait is limited to a tenth of a second.
            let slice = left.min(Duration::from_millis(100)).as_millis() as u16 + u16::from(!left.is_zero());
            let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::from(slice)) {
                Ok(0) if left.is_zero() => return Ok(false),
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(e) => return Err(LabError::Lost(format!("waiting for the lab: {e}"))),
            }
        }
    }

    /// The next event of a process; `None` at the deadline.
    pub(super) fn event(&mut self, deadline: Instant) -> Result<Option<Message>, LabError> {
        match self.events.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.receive(deadline),
        }
    }

    /// Drops events of processes that have ended.
    pub(super) fn drop_events(&mut self) {
        self.events.clear();
    }

    /// Closes the socket, which ends the agent.
    pub(super) fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
