//! `linerate load udp` and `linerate load kcp`.

use super::{failed, write_result};
use crate::cli::{KcpArgs, LoadDatagramArgs, LoadKcpArgs, LoadUdpArgs};
use crate::command::print;
use crate::engine::{Engine, LOAD};
use crate::error::Error;
use crate::interrupt;
use crate::report::load_datagrams as report;
use indicatif::{ProgressBar, ProgressStyle};
use linerate_contract::{Role, Spec};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Interval of the progress line.
const TICK: Duration = Duration::from_millis(500);

pub(super) fn udp(args: &LoadUdpArgs) -> Result<ExitCode, Error> {
    let mut spec = spec("udp", &args.common, args.size);
    spec.rate = args.rate;
    if let Some(percent) = args.search {
        spec.options.insert("search".into(), percent.to_string());
    }
    run(&spec, &args.common)
}

pub(super) fn kcp(args: &LoadKcpArgs) -> Result<ExitCode, Error> {
    let mut spec = spec("kcp", &args.common, args.size);
    set_kcp(&mut spec, &args.kcp);
    run(&spec, &args.common)
}

/// The protocol's settings, as options of a spec.
pub(crate) fn set_kcp(spec: &mut Spec, args: &KcpArgs) {
    for (name, value) in [("mtu", args.mtu), ("window", args.window), ("interval_us", args.interval_us)] {
        spec.options.insert(name.into(), value.to_string());
    }
}

fn spec(layer: &str, args: &LoadDatagramArgs, size: u64) -> Spec {
    let mut spec = Spec::new(Role::Client, layer, "stream");
    spec.connect = Some(args.address);
    spec.size = size;
    (spec.connections, spec.threads) = (args.connections, args.threads);
    spec.duration_ns = Some(args.duration.into());
    spec.timeout_ns = args.timeout.into();
    spec.options.insert("mode".into(), args.mode.name().into());
    spec
}

fn run(spec: &Spec, args: &LoadDatagramArgs) -> Result<ExitCode, Error> {
    let interrupted = interrupt::watch();
    let progress = progress(spec, args);
    let done = Engine::start(LOAD, spec)?.result(&interrupted, |_| {})?;
    progress.finish_and_clear();
    if let Some(path) = &args.json {
        write_result(path, &report::json(spec, &done))?;
    }
    if args.json.as_deref() != Some(Path::new("-")) {
        print(&report::text(spec, &done))?;
    }
    if interrupted.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    if done.operations == 0 {
        return Err(Error::NothingMeasured(format!(
            "no data arrived at {}: check that `linerate serve {}` runs there \
             with the same --size and settings",
            args.address, spec.layer
        )));
    }
    failed::check(spec, &done, args.failures.max_failed)?;
    Ok(ExitCode::SUCCESS)
}

/// A line with the time, on a terminal: datagrams are counted at the server, which reports at the end.
fn progress(spec: &Spec, args: &LoadDatagramArgs) -> ProgressBar {
    if args.quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(format!("{} to {}", spec.layer, args.address));
    // A search has as many tries as it needs.
    let is_search = spec.options.contains_key("search");
    let each = if is_search { ", tries of " } else { " of " }.to_owned();
    let bar = bar.with_prefix(each + &humantime::format_duration(args.duration).to_string());
    let style = ProgressStyle::with_template("{msg}: {elapsed}{prefix}").expect("the template is constant");
    bar.set_style(style);
    bar.enable_steady_tick(TICK);
    bar
}
