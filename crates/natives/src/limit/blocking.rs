//! `rr` without an event loop: blocking sockets, and a thread for each connection at both ends.

use linerate_contract::{Done, ErrorKind, Spec, clock, page};
use linerate_load::meter::Meter;
use linerate_load::process::{Signals, spawn, together};
use linerate_load::refusal::{Doing, Refusal};
use linerate_load::socket::{Dialer, connect_all, connect_error, stream_error};
use nix::errno::Errno;
use std::io::ErrorKind::Interrupted;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Input that is read at once, as in every echo server.
const BUFFER: usize = 64 << 10;
/// After a failed connect, so that a dead port does not burn a CPU; and when there is no descriptor for a
/// connection.
const REST: Duration = Duration::from_millis(1);

pub(super) fn serve(spec: &Spec) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let signals = Signals::claim()?;
    let listener =
        TcpListener::bind(address).map_err(|e| errno(&e)).doing(&format!("listening at {address}"))?;
    let address = listener.local_addr().map_err(|e| errno(&e)).doing("getsockname")?;
    spawn(move || {
        loop {
            match listener.accept() {
                // A peer that vanishes ends its connection and nothing else.
                // Without a thread for it, the connection is closed.
                Ok((stream, _)) => drop(spawn(move || echo(stream))),
                Err(_) => std::thread::sleep(REST),
            }
        }
    })?;
    signals.serve(address);
    Ok(())
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            n => stream.write_all(&buffer[..n])?,
        }
    }
}

/// Runs `spec` to its end.
///
/// # Errors
/// A spec that lacks something.
pub(super) fn client(spec: &Spec) -> Result<Done, Refusal> {
    let message = page(super::check_messages(spec)?);
    let mut pairs = Vec::new();
    for index in 0..u64::from(spec.connections) {
        let all = u64::from(spec.connections);
        let budget = spec.operations.map(|n| n / all + u64::from(index < n % all));
        let mut dialer = Dialer::new(spec)?;
        // What fails here fails again in the first operation, and is counted there.
        let stream = connect(&mut dialer, spec).ok();
        pairs.push((Meter::new(spec, budget)?, dialer, stream));
    }
    let cpu = clock::process_cpu();
    let start = clock::now();
    let work = |(mut meter, mut dialer, stream): (Meter, Dialer, _)| {
        let message = &message;
        move || {
            meter.start(start);
            run_pair(spec, message, &mut meter, &mut dialer, stream);
            meter.close(clock::now());
            meter
        }
    };
    let meters = together(pairs.into_iter().map(work).collect())?;
    let cpu = clock::process_cpu().since(cpu);
    let sum = meters.into_iter().reduce(|mut sum, meter| {
        sum.merge(&meter);
        sum
    });
    Ok(Done { connect: None, ..sum.expect("there is at least one connection").done(cpu) })
}

/// One connection's operations. When one fails, the next begins on a new connection.
fn run_pair(spec: &Spec, message: &[u8], meter: &mut Meter, dialer: &mut Dialer, stream: Option<TcpStream>) {
    let (mut stream, mut buffer) = (stream, vec![0; message.len()]);
    let mut began = clock::now();
    while began < meter.window_end() && meter.begin() {
        let outcome = match &mut stream {
            Some(stream) => exchange(stream, message, &mut buffer),
            none => connect(dialer, spec).and_then(|open| exchange(none.insert(open), message, &mut buffer)),
        };
        let now = clock::now();
        match outcome {
            Ok(()) => {
                meter.succeed(began, now, message.len() as u64, true);
            }
            Err(kind) => {
                meter.fail(kind, began, now);
                stream = None;
                std::thread::sleep(REST);
            }
        }
        meter.look(now);
        began = now;
    }
}

fn connect(dialer: &mut Dialer, spec: &Spec) -> Result<TcpStream, ErrorKind> {
    let socket = dialer.open()?;
    connect_all([&socket], spec.timeout_ns).into_iter().collect::<Result<(), _>>()?;
    let stream = TcpStream::from(socket);
    let timeout = Some(Duration::from(spec.timeout_ns));
    let set = || {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(timeout)?;
        stream.set_write_timeout(timeout)
    };
    set().map_err(|e| connect_error(errno(&e)))?;
    Ok(stream)
}

fn exchange(stream: &mut TcpStream, message: &[u8], buffer: &mut [u8]) -> Result<(), ErrorKind> {
    let failed = |e: std::io::Error| match errno(&e) {
        // What SO_RCVTIMEO and SO_SNDTIMEO end a call with.
        Errno::EAGAIN => ErrorKind::Timeout,
        errno => stream_error(errno),
    };
    stream.write_all(message).map_err(failed)?;
    let mut back = 0;
    while back < buffer.len() {
        match stream.read(&mut buffer[back..]) {
            Ok(0) if back == 0 => return Err(ErrorKind::EmptyResponse),
            Ok(0) => return Err(ErrorKind::Truncated),
            Ok(n) => back += n,
            // A socket with SO_RCVTIMEO ends a call so when the process goes on after SIGSTOP (signal(7)).
            Err(error) if error.kind() == Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    if buffer == message { Ok(()) } else { Err(ErrorKind::WrongContent) }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
