//! The load engine as a process: `linerate-load`, started, heard and ended.
//!
//! It runs beside linerate and not inside of it. What `linerate load` measures with is then byte for byte the program of every
//! trial, terminal and reports take no CPU of its threads, and TLS stays out of this program.

use crate::error::Error;
use crate::system::probe;
use linerate_contract::{Done, Event, Spec};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

const PROGRAM: &str = "linerate-load";
/// How soon a signal is noticed that the terminal did not send to the engine itself.
const GLANCE: Duration = Duration::from_millis(50);

/// A running engine. It ends with its task, with this value, or with this process (it watches its parent).
#[derive(Debug)]
pub struct Engine {
    child: Child,
    events: Receiver<Result<Event, String>>,
    complaints: Option<std::thread::JoinHandle<String>>,
}

impl Engine {
    /// # Errors
    /// The program is missing, or cannot be started.
    pub fn start(spec: &Spec) -> Result<Self, Error> {
        let program = probe::locate(PROGRAM).ok_or_else(|| {
            Error::NothingMeasured(format!(
                "{PROGRAM} is not beside linerate: build it with `cargo build --release`"
            ))
        })?;
        let mut child = Command::new(&program)
            .arg(spec.to_json())
            .env("LINERATE_TIED", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| Error::NothingMeasured(format!("cannot start {}: {e}", program.display())))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok) {
                if sender.send(Event::parse(&line)).is_err() {
                    return;
                }
            }
        });
        let complaints = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut stderr) = stderr {
                // What is not text is left out: it is the last line that matters.
                let _ = stderr.read_to_string(&mut text);
            }
            text
        });
        Ok(Self { child, events, complaints: Some(complaints) })
    }

    /// Hands over events until the task is over; asks the engine to end when `interrupted` is raised.
    ///
    /// # Errors
    /// The engine refused or failed, with its own last words.
    pub fn listen(mut self, interrupted: &AtomicBool, mut hear: impl FnMut(Event)) -> Result<(), Error> {
        let mut told = false;
        loop {
            match self.events.recv_timeout(GLANCE) {
                Ok(Ok(event)) => hear(event),
                Ok(Err(reason)) => return Err(Error::NothingMeasured(reason)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !told && interrupted.load(Ordering::Relaxed) {
                told = true;
                self.stop();
            }
        }
        let status = self.child.wait().map_err(|e| Error::NothingMeasured(format!("{PROGRAM}: {e}")))?;
        let text = self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let reason = text.trim_end().lines().last().unwrap_or("it says nothing");
        let reason = reason.strip_prefix("linerate-load: ").unwrap_or(reason).to_owned();
        match status.code() {
            Some(0) => Ok(()),
            Some(2) => Err(Error::Input(reason)),
            _ => Err(Error::NothingMeasured(format!("{PROGRAM} ended with {status}: {reason}"))),
        }
    }

    /// The account of a client, with its other events handed over on the way.
    ///
    /// # Errors
    /// As [`Self::listen`], or it ended without one.
    pub fn account(self, interrupted: &AtomicBool, mut hear: impl FnMut(Event)) -> Result<Done, Error> {
        let mut done = None;
        self.listen(interrupted, |event| match event {
            Event::Done(account) => done = Some(*account),
            event => hear(event),
        })?;
        done.ok_or_else(|| Error::NothingMeasured(format!("{PROGRAM} ended without an account")))
    }

    /// The first event, and the engine that goes on.
    ///
    /// # Errors
    /// The engine ended, with its own last words.
    pub fn first(self) -> Result<(Self, Event), Error> {
        let event = self.events.recv();
        match event {
            Ok(Ok(event)) => Ok((self, event)),
            Ok(Err(reason)) => Err(Error::NothingMeasured(reason)),
            Err(_) => {
                self.listen(&AtomicBool::new(false), |_| {})?;
                Err(Error::NothingMeasured(format!("{PROGRAM} ended without a word")))
            }
        }
    }

    /// Asks it to end: a client with its account, a server with what it has to say.
    pub fn stop(&mut self) {
        // It may have ended by itself; then there is no such process, and not yet another one: it is not reaped.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
