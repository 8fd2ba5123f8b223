//! NAME as a system of linerate (sdk/CONTRACT.md). This skeleton does `rr` with a thread for each connection and blocking
//! sockets: put the library under test in the place of `serve` and `drive`.

use linerate_contract::{Bytes, Describe, Done, Errors, ErrorKind, Event, Nanos, Recorder, Role, Spec, page};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Why it ends without its result, and the exit status that says so.
enum Refusal {
    BadSpec(String),
    Unsupported(String),
    Failed(String),
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match (arguments.next(), arguments.next()) {
        (Some(json), None) => Spec::parse(&json).map_err(Refusal::BadSpec).and_then(|spec| run(&spec)),
        _ => Err(Refusal::BadSpec("expected one argument, the spec as JSON".into())),
    };
    let (status, why) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Refusal::Failed(why)) => (1, why),
        Err(Refusal::BadSpec(why)) => (2, why),
        Err(Refusal::Unsupported(why)) => (127, why),
    };
    eprintln!("NAME: {why}");
    ExitCode::from(status)
}

fn run(spec: &Spec) -> Result<(), Refusal> {
    if spec.role == Role::Describe {
        say(&describe());
        return Ok(());
    }
    let absent = |field: &str| Refusal::BadSpec(format!("\"{field}\" is missing"));
    match (spec.role, spec.layer.as_str(), spec.workload.as_str()) {
        (_, _, _) if spec.rate.is_some() => Err(Refusal::Unsupported("\"rate\": there is no open loop here".into())),
        (Role::Server, "tcp", "rr") => serve(spec.listen.ok_or_else(|| absent("listen"))?),
        (Role::Client, "tcp", "rr") => {
            let operations = spec.operations.ok_or_else(|| absent("operations"))?;
            if spec.size == 0 {
                return Err(absent("size"));
            }
            drive(spec, spec.connect.ok_or_else(|| absent("connect"))?, operations)
        }
        (role, layer, workload) => {
            Err(Refusal::Unsupported(format!("{role} of {workload} over {layer} I do not support")))
        }
    }
}

fn describe() -> Event {
    Event::Describe(Describe {
        name: "NAME".into(),
        // Ask the library under test for its version.
        version: env!("CARGO_PKG_VERSION").into(),
        roles: vec![Role::Client, Role::Server],
        layers: vec!["tcp".into()],
        workloads: vec!["rr".into()],
    })
}

/// Standard output flushes at the end of each line.
fn say(event: &Event) {
    println!("{}", event.to_json());
}

/// Sends back what it receives, until SIGTERM.
fn serve(address: SocketAddr) -> Result<(), Refusal> {
    let failed = |e: std::io::Error| Refusal::Failed(format!("{address}: {e}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM]).map_err(failed)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A peer that vanishes ends its own thread and nothing else.
            std::thread::spawn(move || echo(stream));
        }
    });
    say(&Event::Ready { address });
    signals.forever().next();
    Ok(())
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 65_536];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length])?,
        }
    }
}

/// What one connection counted.
#[derive(Default)]
struct Account {
    operations: u64,
    errors: Errors,
    latency: Recorder,
}

/// On each connection: send, wait until all of it is back, compare, repeat.
fn drive(spec: &Spec, address: SocketAddr, operations: u64) -> Result<(), Refusal> {
    let streams: Result<Vec<TcpStream>, _> = (0..spec.connections).map(|_| connect(spec, address)).collect();
    let streams = streams.map_err(|e| Refusal::Failed(format!("{address}: {e}")))?;
    let left = Arc::new(AtomicU64::new(operations));
    let together = Arc::new(Barrier::new(streams.len() + 1));
    let message = Arc::new(page(spec.size as usize));
    let threads: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            let (left, together, message) = (left.clone(), together.clone(), message.clone());
            std::thread::spawn(move || {
                together.wait();
                exchange(stream, &message, &left)
            })
        })
        .collect();
    let (start_ns, start_cpu) = (clock(Clock::Monotonic), clock(Clock::Process));
    together.wait();
    let mut sum = Account::default();
    for thread in threads {
        let account = thread.join().map_err(|_| Refusal::Failed("a thread panicked".into()))?;
        sum.operations += account.operations;
        sum.errors.merge(&account.errors);
        sum.latency.merge(&account.latency);
    }
    let (end_ns, end_cpu) = (clock(Clock::Monotonic), clock(Clock::Process));
    say(&Event::Done(Box::new(Done {
        operations: sum.operations,
        bytes: Bytes(sum.operations * spec.size),
        start_ns,
        end_ns,
        errors: sum.errors,
        latency: Some(sum.latency.counts()),
        cpu_ns: end_cpu.since(start_cpu),
        verified: sum.operations,
        ..Done::default()
    })));
    Ok(())
}

fn connect(spec: &Spec, address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_nanos(spec.timeout_ns.0)))?;
    Ok(stream)
}

fn exchange(mut stream: TcpStream, message: &[u8], left: &AtomicU64) -> Account {
    let mut account = Account::default();
    let mut answer = vec![0; message.len()];
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
        let start = Instant::now();
        let kind = match stream.write_all(message).and_then(|()| stream.read_exact(&mut answer)) {
            Ok(()) if answer == message => {
                account.latency.record(start.elapsed().as_nanos() as u64);
                account.operations += 1;
                continue;
            }
            Ok(()) => ErrorKind::WrongContent,
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => ErrorKind::Timeout,
            Err(_) => ErrorKind::Reset,
        };
        // A connection that failed once is over; the operations left to it are the others'.
        account.errors.add(kind, 1);
        break;
    }
    account
}

#[derive(Clone, Copy)]
enum Clock {
    Monotonic,
    Process,
}

/// The contract's clocks, as clock_gettime(2) has them.
fn clock(which: Clock) -> Nanos {
    use nix::time::{ClockId, clock_gettime};
    let id = match which {
        Clock::Monotonic => ClockId::CLOCK_MONOTONIC,
        Clock::Process => ClockId::CLOCK_PROCESS_CPUTIME_ID,
    };
    let time = clock_gettime(id).map_or(Duration::ZERO, Duration::from);
    time.into()
}
