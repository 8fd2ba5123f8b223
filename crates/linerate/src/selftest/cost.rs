//! Cost and resolution of measuring: the clock, the timers, the histogram, the way through the loopback.

use super::{Bound, CONNECTIONS, RATE, Row, Unit, Way};
use linerate_contract::Recorder;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Calls in a batch.
const CALLS: u32 = 200_000;
/// Batches; the fastest counts, because slower ones were disturbed.
const BATCHES: u32 = 40;
/// The histogram has three significant digits.
const HISTOGRAM_BOUND: f64 = 0.001;
/// Upper bound of the cost of recording an operation.
const RECORD_BOUND_NANOS: f64 = 25.0;

/// Number of measured sleeps, and the duration of each.
const SLEEPS: u32 = 200;
const SLEEP: Duration = Duration::from_millis(1);

/// Duration of the loop that reads the clock, and the gap between two readings that counts as a stop.
const WATCHED: Duration = Duration::from_secs(1);
const STOPPED: Duration = Duration::from_micros(50);

/// Messages there and back through the loopback, and their length, which is about that of a request.
const PASSES: u32 = 4_000;
const MESSAGE: [u8; 128] = [0; 128];

/// Takes a second and a half.
pub fn rows(way: Way) -> Vec<Row> {
    // In a separate thread, because its timer slack would be inherited by child processes.
    let late = std::thread::spawn(late_wakes).join().expect("a panic aborts the process");
    let shown = |what: &str, measured| Row::shown(what, measured, Unit::Nanos);
    let (stopped, longest) = stops();
    vec![
        shown("reading the clock", fastest(clock_readings)),
        shown("smallest step of the clock", smallest_step()),
        shown("delay of a wake-up, p50", late[late.len() / 2]),
        shown("delay of a wake-up, p99", late[late.len() * 99 / 100]),
        shown("stops of a busy loop in 1 s", stopped.as_nanos() as f64),
        shown("longest of these stops", longest.as_nanos() as f64),
        Row {
            what: "recording an operation, open loop".into(),
            truth: 0.0,
            measured: recording(),
            unit: Unit::Nanos,
            bound: Bound::Above(RECORD_BOUND_NANOS),
            tolerates: 1.0,
        },
        histogram_error(),
        shown("loopback, one pair without a pause", way.least),
        shown("loopback, all in turn, p50", way.p50),
        shown("loopback, all in turn, p99", way.p99),
    ]
}

/// Messages over TCP and their responses, between sockets of one thread: neither end waits for a CPU, so no
/// wake-up is in it. Sockets that were used 100 ms ago are in no cache, and take longer. Takes a second.
///
/// # Errors
/// The loopback has no address, or no port is left.
pub fn way() -> io::Result<Way> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let pairs = |count| (0..count).map(|_| pair(&listener, address)).collect::<io::Result<Vec<_>>>();
    let busy = passes(&mut pairs(1)?, Duration::ZERO)?;
    let paced = passes(&mut pairs(CONNECTIONS)?, Duration::from_secs_f64(1.0 / RATE))?;
    let at = |sorted: &[f64], percent| sorted[sorted.len() * percent / 100];
    Ok(Way { least: at(&busy, 50), p50: at(&paced, 50), p99: at(&paced, 99) })
}

fn pair(listener: &TcpListener, address: SocketAddr) -> io::Result<[TcpStream; 2]> {
    let pair = [TcpStream::connect(address)?, listener.accept()?.0];
    pair.iter().try_for_each(|end| end.set_nodelay(true))?;
    Ok(pair)
}

/// Nanoseconds of each message there and back, in ascending order: pair after pair, one in each gap.
fn passes(pairs: &mut [[TcpStream; 2]], gap: Duration) -> io::Result<Vec<f64>> {
    let (mut all, mut buffer) = (Vec::new(), MESSAGE);
    let count = pairs.len();
    for pass in 0..PASSES as usize {
        let [one, other] = &mut pairs[pass % count];
        let start = Instant::now();
        one.write_all(&MESSAGE)?;
        other.read_exact(&mut buffer)?;
        other.write_all(&MESSAGE)?;
        one.read_exact(&mut buffer)?;
        all.push(start.elapsed().as_nanos() as f64);
        while start.elapsed() < gap {
            std::hint::spin_loop();
        }
    }
    all.sort_unstable_by(f64::total_cmp);
    Ok(all)
}

fn clock_readings() {
    for _ in 0..CALLS {
        black_box(Instant::now());
    }
}

/// Nanoseconds for one of the calls of a batch, in the fastest batch.
fn fastest(mut batch: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        batch();
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..BATCHES).map(time).fold(f64::INFINITY, f64::min)
}

fn smallest_step() -> f64 {
    let steps = (0..CALLS).map(|_| {
        let start = Instant::now();
        start.elapsed().as_nanos() as f64
    });
    steps.filter(|step| *step > 0.0).fold(f64::INFINITY, f64::min)
}

/// Delays of wake-ups in nanoseconds, in ascending order: the error of a client that sleeps.
fn late_wakes() -> Vec<f64> {
    // Refused only in sandboxes; the default timer slack then applies.
    let _ = nix::sys::prctl::set_timerslack(1);
    let late = |_| {
        let start = Instant::now();
        std::thread::sleep(SLEEP);
        start.elapsed().saturating_sub(SLEEP).as_nanos() as f64
    };
    let mut all: Vec<f64> = (0..SLEEPS).map(late).collect();
    all.sort_unstable_by(f64::total_cmp);
    all
}

/// Total and longest time that a loop without sleeps was stopped by the machine or its hypervisor.
fn stops() -> (Duration, Duration) {
    let (mut all, mut longest) = (Duration::ZERO, Duration::ZERO);
    let start = Instant::now();
    let mut last = start;
    while last - start < WATCHED {
        let now = Instant::now();
        if now - last >= STOPPED {
            all += now - last;
            longest = longest.max(now - last);
        }
        last = now;
    }
    (all, longest)
}

/// The cost of the three records of an open-loop operation: response time, service time, delay.
fn recording() -> f64 {
    let mut recorders = [Recorder::default(), Recorder::default(), Recorder::default()];
    // Spread over 10 us to 1 ms, like latencies.
    let latency = |n: u64| 10_000 + (n.wrapping_mul(6_364_136_223_846_793_005) >> 44);
    let latencies: Vec<u64> = (0..CALLS.into()).map(latency).collect();
    fastest(|| recorders.iter_mut().for_each(|recorder| recorder.record_all(black_box(&latencies))))
}

/// The value with the largest relative error in the histogram.
fn histogram_error() -> Row {
    let mut worst = (1.0_f64, 1.0_f64);
    let mut value = 1_000_u64;
    while value < 60_000_000_000 {
        let mut recorder = Recorder::default();
        recorder.record(value);
        let recorded = recorder.counts().percentile(50.0).unwrap_or(0) as f64;
        if (recorded / value as f64 - 1.0).abs() > (worst.1 / worst.0 - 1.0).abs() {
            worst = (value as f64, recorded);
        }
        value += value / 7 + 1;
    }
    Row {
        what: "worst value in the histogram".into(),
        truth: worst.0,
        measured: worst.1,
        unit: Unit::Nanos,
        bound: Bound::Share(HISTOGRAM_BOUND),
        tolerates: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_has_three_significant_digits() {
        let row = histogram_error();
        assert!(row.is_within_bound(), "{row:?}");
    }
}
