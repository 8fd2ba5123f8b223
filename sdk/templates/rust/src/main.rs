//! NAME as a system of linerate (sdk/CONTRACT.md). This skeleton does `rr` with a thread for each
//! connection and blocking sockets: put the library under test in the place of `serve` and `drive`.

use linerate_contract::program::{self, Refusal};
use linerate_contract::tally::{Tally, connect_error, stream_error};
use linerate_contract::{Describe, Done, ErrorKind, Event, Layer, Role, Spec, Window, Workload, clock, page};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

fn main() {
    program::run("NAME", &[], |_| describe(), run);
}

fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    let absent = |field: &str| Refusal::BadSpec(format!("\"{field}\" is missing"));
    match (spec.role, spec.layer, spec.workload) {
        (_, _, _) if spec.rate.is_some() => {
            Err(Refusal::Unsupported("\"rate\": there is no open loop here".into()))
        }
        (Role::Server, Layer::Tcp, Workload::Rr) => {
            serve(spec.listen.ok_or_else(|| absent("listen"))?).map(|()| None)
        }
        (Role::Client, Layer::Tcp, Workload::Rr) => {
            if spec.operations.is_none() && spec.duration_ns.is_none() {
                return Err(absent("operations"));
            }
            if spec.size == 0 {
                return Err(absent("size"));
            }
            drive(spec, spec.connect.ok_or_else(|| absent("connect"))?).map(Some)
        }
        (role, layer, workload) => {
            Err(Refusal::Unsupported(format!("{role} of {workload} over {layer} I do not support")))
        }
    }
}

fn describe() -> Describe {
    Describe {
        name: "NAME".into(),
        // Ask the library under test for its version.
        version: env!("CARGO_PKG_VERSION").into(),
        roles: vec![Role::Client, Role::Server],
        layers: vec![Layer::Tcp],
        workloads: vec![Workload::Rr],
        ends: Vec::new(),
    }
}

/// Sends back what it receives, until SIGTERM.
fn serve(address: SocketAddr) -> Result<(), Refusal> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM])?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A peer that vanishes ends its own thread and nothing else.
            std::thread::spawn(move || echo(stream));
        }
    });
    program::emit(&Event::Ready { address });
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

/// On each connection: send, wait until all of it is back, compare, repeat.
fn drive(spec: &Spec, address: SocketAddr) -> Result<Done, Refusal> {
    let streams: Vec<_> = (0..spec.connections).map(|_| connect(spec, address)).collect();
    let left = Arc::new(AtomicU64::new(spec.operations.unwrap_or(u64::MAX)));
    let message = Arc::new(page(spec.size as usize));
    let window = Arc::new(Window::open(spec));
    let threads: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            let (left, window, message) = (left.clone(), window.clone(), message.clone());
            std::thread::spawn(move || exchange(stream, &message, &window, &left))
        })
        .collect();
    let mut sum = Tally::default();
    for thread in threads {
        sum.merge(&thread.join().map_err(|_| std::io::Error::other("a thread panicked"))?);
    }
    Ok(window.done(&sum, |operations, _| operations))
}

fn connect(spec: &Spec, address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_nanos(spec.timeout_ns.0)))?;
    Ok(stream)
}

fn exchange(
    stream: std::io::Result<TcpStream>,
    message: &[u8],
    window: &Window,
    left: &AtomicU64,
) -> Tally {
    let mut tally = window.tally();
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) => {
            tally.fail(connect_error(&error));
            return tally;
        }
    };
    let mut answer = vec![0; message.len()];
    loop {
        let began = clock::now();
        let take = |left: u64| left.checked_sub(1);
        if window.is_over(began) || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            break;
        }
        let kind = match stream.write_all(message).and_then(|()| stream.read_exact(&mut answer)) {
            Ok(()) if answer == message => {
                tally.succeed(began, clock::now(), message.len() as u64);
                continue;
            }
            Ok(()) => ErrorKind::WrongContent,
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => ErrorKind::Timeout,
            Err(e) => stream_error(&e),
        };
        // A connection that failed once is over; the operations left to it are the others'.
        tally.fail(kind);
        break;
    }
    tally
}
