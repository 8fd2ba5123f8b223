//! Streams over connections or flows of datagrams.

use super::{LIVE, SECOND, failed, publish, write_result};
use crate::cli::ResultArgs;
use crate::engine::{Engine, LOAD};
use crate::error::Error;
use crate::interrupt;
use crate::output::{self, show};
use crate::report::load_flows as report;
use indicatif::{ProgressBar, ProgressStyle};
use linerate_contract::{Done, Event, Sample, Spec};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs one stream, or two at the same time: each direction has its own engine. An error where nothing
/// arrived or too much failed.
pub(super) fn run(mut specs: Vec<Spec>, target: &str, args: &ResultArgs) -> Result<ExitCode, Error> {
    let has_datagrams = report::has_datagrams(&specs[0]);
    let live = output::stderr_is_terminal() && !args.quiet;
    let by_second = args.csv.is_some() || args.json.is_some();
    for spec in &mut specs {
        let every = if by_second { Some(SECOND) } else { live.then_some(LIVE) };
        spec.sample_ns = every.filter(|_| !has_datagrams);
    }
    let clock = (live && has_datagrams).then(|| clock(&specs[0], target));
    let interrupted = interrupt::watch();
    let (results, samples): (Vec<Done>, Vec<Vec<Sample>>) =
        run_together(&specs, live && !has_datagrams, &interrupted)?.into_iter().unzip();
    match clock {
        Some(clock) => clock.finish_and_clear(),
        None if live => show(""),
        None => {}
    }
    let runs: Vec<(Spec, Done)> = specs.into_iter().zip(results).collect();
    if let Some(path) = &args.csv {
        write_result(path, &report::csv(&runs, &samples));
    }
    publish(args, &report::json(&runs, &samples), &report::text(target, &runs));
    if interrupted.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    if runs.iter().any(|(_, done)| done.bytes.0 == 0) {
        return Err(Error::NothingMeasured(format!(
            "no data arrived at {target}: check that `linerate serve {target} {}` runs there with the same \
             settings",
            report::served(&runs[0].0)
        )));
    }
    runs.iter().try_for_each(|(spec, done)| failed::check(spec, done, args.max_failed))?;
    Ok(ExitCode::SUCCESS)
}

/// A line with the time: datagrams are counted at the server, which reports at the end.
fn clock(spec: &Spec, target: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(format!("stream to {target}"));
    // A search has as many tries as it needs.
    let each = if spec.options.contains_key("search") { ", tries of " } else { " of " }.to_owned();
    let time = Duration::from_nanos(spec.duration_ns.unwrap_or_default().0);
    let bar = bar.with_prefix(each + &humantime::format_duration(time).to_string());
    let style = ProgressStyle::with_template("{msg}: {elapsed}{prefix}").expect("the template is constant");
    bar.set_style(style);
    bar.enable_steady_tick(LIVE.into());
    bar
}

fn run_together(
    specs: &[Spec],
    live: bool,
    interrupted: &AtomicBool,
) -> Result<Vec<(Done, Vec<Sample>)>, Error> {
    // Started by this thread, because an engine ends with the thread that started it.
    let engines = specs.iter().map(|spec| Engine::start(LOAD, spec)).collect::<Result<Vec<_>, _>>()?;
    let last = Mutex::new(vec![None; specs.len()]);
    std::thread::scope(|scope| {
        let listeners: Vec<_> = engines
            .into_iter()
            .zip(specs)
            .enumerate()
            .map(|(index, (engine, spec))| {
                let last = &last;
                scope.spawn(move || {
                    let mut samples = Vec::new();
                    let done = engine.result(interrupted, |event| {
                        let Event::Sample(sample) = event else { return };
                        samples.push(sample.clone());
                        if live {
                            let mut last = last.lock().expect("the holder only prints");
                            last[index] = Some((spec, sample));
                            show(&report::live(&last, spec.sample_ns.unwrap_or(LIVE)));
                        }
                    });
                    done.map(|done| (done, samples))
                })
            })
            .collect();
        listeners.into_iter().map(|listener| listener.join().expect("a panic is a bug")).collect()
    })
}
