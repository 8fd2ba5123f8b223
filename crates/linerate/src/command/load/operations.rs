//! Loads whose operations are counted one by one: requests and round trips.

use super::{LIVE, SECOND, failed, publish, write_result};
use crate::cli::{LoadArgs, ResultArgs};
use crate::engine::{Engine, LOAD};
use crate::error::Error;
use crate::interrupt;
use crate::output::{self, show};
use crate::report::Style;
use crate::report::load::{self, LoadResult, Words};
use crate::report::load_repeats as repeats;
use crate::report::load_series;
use crate::report::numbers::plain;
use crate::url::Scheme;
use linerate_contract::{Done, Event, Sample, Spec};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a server is loaded, and where the result goes besides the terminal.
pub(super) struct Operations<'a> {
    pub(super) target: &'a str,
    pub(super) words: Words,
    pub(super) warmup: Option<Duration>,
    /// 1: once, with all details.
    pub(super) repeat: u32,
    pub(super) csv: Option<&'a Path>,
    pub(super) result: &'a ResultArgs,
    pub(super) style: Style,
}

impl<'a> Operations<'a> {
    pub(super) fn new(args: &'a LoadArgs, target: &'a str, scheme: &Scheme, style: Style) -> Self {
        let words = match scheme {
            _ if scheme.is_of_calls() => Words { operation: "call", payload: "messages" },
            _ if scheme.is_of_requests() => Words { operation: "request", payload: "bodies" },
            _ => Words { operation: "round trip", payload: "messages" },
        };
        let (warmup, repeat) = (args.volume.warmup, args.volume.repeat);
        let (csv, result) = (args.result.csv.as_deref(), &args.result);
        Self { target, words, warmup, repeat, csv, result, style }
    }

    /// Runs the client of `spec`, with a progress line, and prints the result.
    pub(super) fn run(&self, spec: &mut Spec) -> Result<ExitCode, Error> {
        let interrupted = interrupt::watch();
        if let Some(time) = self.warmup {
            let warmup = Spec { operations: None, duration_ns: Some(time.into()), ..spec.clone() };
            self.load(&warmup, &interrupted, "warm-up ")?;
        }
        let by_second = self.csv.is_some() || self.result.json.is_some();
        spec.sample_ns = if by_second { Some(SECOND) } else { self.is_live().then_some(LIVE) };
        let mut results = Vec::new();
        while (results.len() as u32) < self.repeat && !interrupted.load(Ordering::Relaxed) {
            let place = format!("{} of {} ", results.len() + 1, self.repeat);
            let (done, samples) = self.load(spec, &interrupted, if self.repeat > 1 { &place } else { "" })?;
            if let Some(path) = self.csv {
                write_result(path, &load_series::csv(&load_series::of_operations(&done, &samples)));
            }
            results.push((done, samples));
        }
        if !results.is_empty() {
            self.publish(spec, &results);
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        for (done, _) in &results {
            if done.operations == 0 {
                return Err(Error::NothingMeasured(self.nothing(spec, done)));
            }
            failed::check(spec, done, self.result.max_failed)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The result of one client and its samples; the progress line begins with `place`.
    pub(super) fn load(
        &self,
        spec: &Spec,
        interrupted: &AtomicBool,
        place: &str,
    ) -> Result<(Done, Vec<Sample>), Error> {
        let live = self.is_live();
        let mut samples = Vec::new();
        let done = Engine::start(LOAD, spec)?.result(interrupted, |event| {
            if let Event::Sample(sample) = event {
                if live {
                    let every = spec.sample_ns.unwrap_or(LIVE);
                    show(&format!("{place}{}", load::live(&sample, every, self.words)));
                }
                samples.push(sample);
            }
        })?;
        if live {
            show("");
        }
        Ok((done, samples))
    }

    /// Why there is no result.
    fn nothing(&self, spec: &Spec, done: &Done) -> String {
        let what = self.words.operation;
        match spec.duration_ns.filter(|_| done.errors.total() == 0 && done.in_flight > 0) {
            Some(time) => {
                let seconds = plain(time.as_secs_f64());
                format!("no {what} ended within {seconds} s, and none failed: a longer time is -d")
            }
            None => {
                format!("no {what} succeeded: see `failed` above for the kinds of errors and their causes")
            }
        }
    }

    /// Whether a progress line is shown.
    pub(super) fn is_live(&self) -> bool {
        output::stderr_is_terminal() && !self.result.quiet
    }

    fn publish(&self, spec: &Spec, results: &[(Done, Vec<Sample>)]) {
        let (target, words) = (self.target, self.words);
        let results: Vec<LoadResult<'_>> =
            results.iter().map(|(done, samples)| LoadResult { target, words, spec, done, samples }).collect();
        let (json, text) = match &results[..] {
            [one] if self.repeat == 1 => (load::json(one), load::text(one, self.style)),
            several => (repeats::json(several), repeats::text(several, self.style)),
        };
        publish(self.result, &json, &text);
    }
}
