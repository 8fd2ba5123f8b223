//! `linerate load udp` and `linerate load kcp`.

use super::{end, of_flows};
use crate::cli::{KcpArgs, LoadDatagramArgs, LoadKcpArgs, LoadUdpArgs};
use crate::engine::{Engine, LOAD};
use crate::error::Error;
use crate::interrupt;
use crate::report::load_datagrams as report;
use indicatif::{ProgressBar, ProgressStyle};
use linerate_contract::Spec;
use std::process::ExitCode;
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
    let mut spec = of_flows(layer, "stream", &args.flows);
    (spec.connect, spec.size) = (Some(args.address), size);
    spec.options.insert("mode".into(), args.mode.name().into());
    spec
}

fn run(spec: &Spec, args: &LoadDatagramArgs) -> Result<ExitCode, Error> {
    let interrupted = interrupt::watch();
    let progress = progress(spec, args);
    let done = Engine::start(LOAD, spec)?.result(&interrupted, |_| {})?;
    progress.finish_and_clear();
    let (json, text) = (report::json(spec, &done), report::text(spec, &done));
    end(&args.address.to_string(), &[(spec.clone(), done)], [&json, &text], &args.flows.result, &interrupted)
}

/// A line with the time, on a terminal: datagrams are counted at the server, which reports at the end.
fn progress(spec: &Spec, args: &LoadDatagramArgs) -> ProgressBar {
    if args.flows.result.quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(format!("{} to {}", spec.layer, args.address));
    // A search has as many tries as it needs.
    let is_search = spec.options.contains_key("search");
    let each = if is_search { ", tries of " } else { " of " }.to_owned();
    let bar = bar.with_prefix(each + &humantime::format_duration(args.flows.duration).to_string());
    let style = ProgressStyle::with_template("{msg}: {elapsed}{prefix}").expect("the template is constant");
    bar.set_style(style);
    bar.enable_steady_tick(TICK);
    bar
}
