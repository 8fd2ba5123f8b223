//! A client beside a server that stops answering: the window ends at its end, and operations in flight are
//! reported.

use super::cases::{LATE, secure};
use super::common::program::{Program, any_port, native, spec_of};
use super::{MIB, same};
use linerate_contract::{Direction, Done, ErrorKind, Layer, Nanos, Role, Spec, Workload};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const WINDOW: Nanos = Nanos(500_000_000);
/// An operation that hangs is in flight at the end of the window; a transfer is broken before it.
const LONG: Nanos = Nanos(700_000_000);
const SHORT: Nanos = Nanos(300_000_000);
/// Handshakes of two connections, and then some operations.
const BYTES: i64 = 8 << 10;

/// Runs a client of the workload through a relay that hangs.
pub(crate) fn keeps_its_window(
    program: &Path,
    options: &BTreeMap<String, String>,
    layer: Layer,
    workload: Workload,
) -> Result<(), String> {
    let mut client = Spec::new(Role::Client, layer, workload);
    (client.size, client.connections, client.duration_ns) = (256, 2, Some(WINDOW));
    client.timeout_ns = LONG;
    if workload == Workload::Stream {
        (client.size, client.bytes, client.timeout_ns) = (4096, Some(MIB), SHORT);
        client.choose(Direction::ClientReads);
    }
    let mut server = Spec::new(Role::Server, layer, workload);
    (server.listen, server.size, server.options) = (Some(any_port()), client.size, client.options.clone());
    secure(&mut server, &mut client);
    let mut serving = Program::start(&native(), &server)?;
    let address = match serving.ready() {
        // No program serves what needs no server.
        Err(reason) if reason.starts_with("unsupported") => return Ok(()),
        address => address?,
    };
    client.connect = Some(relay(address).map_err(|e| format!("no relay: {e}"))?);
    client.options.extend(options.clone());
    let Some(done) = Program::start(program, &spec_of(client))?.done()? else { return Ok(()) };
    right(workload, &done).map_err(|what| format!("{what}: {done:?}"))
}

fn right(workload: Workload, done: &Done) -> Result<(), String> {
    let elapsed = done.end_ns.since(done.start_ns);
    if done.errors.0.contains_key(&ErrorKind::ConnectTimeout) {
        return Err(LATE.into());
    }
    let timeouts = done.errors.0.get(&ErrorKind::Timeout).copied().unwrap_or(0);
    if timeouts == 0 || timeouts != done.errors.total() {
        return Err("operations that hung are timeouts, and the only failures".into());
    }
    if workload == Workload::Stream {
        return if elapsed < WINDOW { Err("its window is shorter than its time".into()) } else { Ok(()) };
    }
    same("nanoseconds", elapsed.0, WINDOW.0)?;
    same("operations in flight", done.in_flight, timeouts)?;
    let measured = done.latency.as_ref().map_or(done.operations, |latency| latency.total());
    same("latencies", measured, done.operations)?;
    if done.operations == 0 { Err("no operation before the server hung".into()) } else { Ok(()) }
}

/// Relays connections to a server until [`BYTES`] have passed, and then nothing: they stay open.
fn relay(server: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(any_port())?;
    let (address, left) = (listener.local_addr()?, Arc::new(AtomicI64::new(BYTES)));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(server) else { continue };
            for (from, to) in [(&client, &server), (&server, &client)] {
                let _ = from.set_nodelay(true);
                let (Ok(from), Ok(to), left) = (from.try_clone(), to.try_clone(), left.clone()) else {
                    continue;
                };
                std::thread::spawn(move || pass(from, to, &left));
            }
        }
    });
    Ok(address)
}

fn pass(mut from: TcpStream, mut to: TcpStream, left: &AtomicI64) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let length = from.read(&mut buffer)?;
        if length == 0 {
            return to.shutdown(Shutdown::Write);
        }
        if left.fetch_sub(length as i64, Ordering::Relaxed) < length as i64 {
            loop {
                std::thread::park();
            }
        }
        to.write_all(&buffer[..length])?;
    }
}
