//! The load engine as a process: starts and stops `linerate-load` and reads its events. The fault injectors
//! of the selftest are in `linerate-natives`.
//!
//! `linerate load` uses the same program as every trial. Terminal output and reports use no CPU of its
//! threads, and this program needs no TLS library.

use crate::error::Error;
use crate::lab::program;
use linerate_contract::{Done, Event, Spec};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The programs, in linerate's own folder: the load engine, and what is no load generation.
pub const LOAD: &str = "linerate-load";
pub const NATIVES: &str = "linerate-natives";
/// Poll interval of the interrupt flag, for signals that the terminal did not also send to the engine.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A running engine. It ends after its task, when this value is dropped, or with this process.
#[derive(Debug)]
pub struct Engine {
    program: &'static str,
    child: Child,
    events: Receiver<Result<Event, String>>,
    stderr: Option<std::thread::JoinHandle<String>>,
}

impl Engine {
    /// Starts `program`, [`LOAD`] or [`NATIVES`], with `spec`.
    ///
    /// # Errors
    /// The program is missing, or cannot be started.
    pub fn start(program: &'static str, spec: &Spec) -> Result<Self, Error> {
        let file = program::locate(program).ok_or_else(|| {
            Error::NothingMeasured(format!(
                "{program} is not in linerate's folder or on PATH: build it with `cargo build --release`"
            ))
        })?;
        let mut child = Command::new(&file)
            .arg("-")
            .env("LINERATE_TIED", "1")
            // Signals of a terminal are linerate's.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| Error::NothingMeasured(format!("cannot start {}: {e}", file.display())))?;
        if let Some(mut stdin) = child.stdin.take() {
            // Not an argument, which every user can read: it may have a private key. An engine that has ended
            // already has printed its reason.
            let _ = stdin.write_all(spec.to_json().as_bytes());
        }
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok) {
                if sender.send(Event::parse(&line)).is_err() {
                    return;
                }
            }
        });
        let stderr_text = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut stderr) = stderr {
                // Only the last line is used, so invalid UTF-8 before it does not matter.
                let _ = stderr.read_to_string(&mut text);
            }
            text
        });
        Ok(Self { program, child, events, stderr: Some(stderr_text) })
    }

    /// Calls `on_event` until the task is over; stops the engine when `interrupted` is set.
    ///
    /// # Errors
    /// The engine refused or failed, with the last line of its stderr.
    pub fn listen(mut self, interrupted: &AtomicBool, mut on_event: impl FnMut(Event)) -> Result<(), Error> {
        let mut stopped = false;
        loop {
            match self.events.recv_timeout(POLL_INTERVAL) {
                Ok(Ok(event)) => on_event(event),
                Ok(Err(reason)) => return Err(Error::NothingMeasured(reason)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !stopped && interrupted.load(Ordering::Relaxed) {
                stopped = true;
                self.stop();
            }
        }
        let status =
            self.child.wait().map_err(|e| Error::NothingMeasured(format!("{}: {e}", self.program)))?;
        let text = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let reason = text.trim_end().lines().last();
        let own = reason.and_then(|line| line.strip_prefix(&format!("{}: ", self.program)));
        match (status.code(), own) {
            (Some(0), _) => Ok(()),
            (Some(2), _) => Err(Error::Input(own.or(reason).unwrap_or("no error message").to_owned())),
            // The engine has said why.
            (Some(1), Some(own)) => Err(Error::NothingMeasured(own.to_owned())),
            _ => {
                let reason = reason.unwrap_or("no error message");
                Err(Error::NothingMeasured(format!("{} ended with {status}: {reason}", self.program)))
            }
        }
    }

    /// The result of a client; `on_event` is called for its other events.
    ///
    /// # Errors
    /// As [`Self::listen`], or the engine exited without a result.
    pub fn result(self, interrupted: &AtomicBool, mut on_event: impl FnMut(Event)) -> Result<Done, Error> {
        let (program, mut done) = (self.program, None);
        self.listen(interrupted, |event| match event {
            Event::Done(result) => done = Some(*result),
            event => on_event(event),
        })?;
        done.ok_or_else(|| Error::NothingMeasured(format!("{program} exited without a result")))
    }

    /// The first event, and the running engine.
    ///
    /// # Errors
    /// The engine exited, with the last line of its stderr.
    pub fn first(self) -> Result<(Self, Event), Error> {
        let event = self.events.recv();
        match event {
            Ok(Ok(event)) => Ok((self, event)),
            Ok(Err(reason)) => Err(Error::NothingMeasured(reason)),
            Err(_) => {
                let program = self.program;
                self.listen(&AtomicBool::new(false), |_| {})?;
                Err(Error::NothingMeasured(format!("{program} exited without output")))
            }
        }
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM; clients and fault injectors print their result.
    pub fn stop(&mut self) {
        // It may already have ended. Its pid is not reused, because it is not reaped yet.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
