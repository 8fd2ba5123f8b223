//! All that linerate writes to standard output and standard error. Nothing that is written can end a run: a
//! full disk, a closed pipe and a terminal that is gone are no panic (docs/decisions/safety.md).
//!
//! Lints forbid `print!`, `eprintln!` and the streams themselves everywhere else.

#![allow(clippy::disallowed_methods, reason = "the one place that writes to the streams")]

use crate::error::Error;
use crate::printable::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The bar on the terminal. Its lock is held while it is drawn, and while something else is printed.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

thread_local! {
    /// The thread prints something else.
    static IS_PRINTING: Cell<bool> = const { Cell::new(false) };
}

/// A line to the user on standard error.
pub(crate) fn note(line: &str) {
    without_bar(|| {
        let _ = io::stderr().write_all(format!("{}\n", printable(line)).as_bytes());
    });
}

/// Replaces the line of a load on standard error.
pub(crate) fn show(line: &str) {
    let _ = io::stderr().write_all(format!("\r\x1b[K{line}").as_bytes());
}

/// Writes to standard output. A reader that is gone (`| head`) is no error.
///
/// # Errors
/// A full disk, for example.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout();
    match stdout.write_all(printable(text).as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::file(Path::new("standard output"))(e)),
        _ => Ok(()),
    }
}

/// A warning with the reason for what could not be written, or nothing.
pub(crate) fn warn(written: Result<(), Error>) {
    if let Err(error) = written {
        note(&format!("warning: {error}"));
    }
}

/// Columns of the terminal that is standard output, if it is one.
pub(crate) fn stdout_width() -> Option<u16> {
    io::stdout().is_terminal().then(|| console::Term::stdout().size().1)
}

/// True if standard error is a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Makes the bar on the terminal, which has this length.
pub(crate) fn begin_bar(length: u64) {
    let style = ProgressStyle::with_template("{bar:24} {wide_msg}").expect("the template is constant");
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr()).with_style(style);
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
}

/// Draws the bar, if there is one.
pub(crate) fn draw_bar(position: u64, message: &str) {
    if let Some(bar) = &*BAR.lock().unwrap_or_else(PoisonError::into_inner) {
        bar.set_position(position);
        bar.set_message(printable(message).into_owned());
    }
}

/// Removes the bar.
pub(crate) fn end_bar() {
    if let Some(bar) = BAR.lock().unwrap_or_else(PoisonError::into_inner).take() {
        bar.finish_and_clear();
    }
}

/// Prints while there is no bar on the terminal, which would be drawn over it.
pub(crate) fn without_bar(print: impl FnOnce()) {
    if IS_PRINTING.replace(true) {
        return print();
    }
    match &*BAR.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
    IS_PRINTING.set(false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_within_something_printed_waits_for_nothing() {
        let mut printed = Vec::new();
        without_bar(|| without_bar(|| printed.push(1)));
        without_bar(|| printed.push(2));
        assert_eq!(printed, [1, 2]);
    }
}
