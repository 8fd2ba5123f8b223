//! The client: one thread that keeps one message under way in every pair.

use super::region::Region;
use super::{Patience, is_gone};
use crate::clock;
use crate::meter::Meter;
use crate::refusal::{Doing, Refusal};
use linerate_contract::{Done, ErrorKind, Nanos, Spec, page};
use nix::errno::Errno;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Runs `spec` to its end.
///
/// # Errors
/// A spec that lacks something, or a server whose memory cannot be reached.
pub(in crate::limit) fn run(spec: &Spec) -> Result<Done, Refusal> {
    let size = super::super::check_messages(spec)?;
    let pairs = spec.connections as usize;
    let (region, stream) = attach(spec, pairs, size)?;
    let message = words(&page(size));
    let mut back = vec![0; message.len()];
    let mut meter = Meter::new(spec, spec.operations);
    let cpu = clock::process_cpu();
    let mut now = clock::now();
    meter.start(now);
    // By pair: the number under way and when it was sent; zero if none is.
    let mut under_way = vec![(0_u64, Nanos::ZERO); pairs];
    for (pair, state) in under_way.iter_mut().enumerate() {
        if meter.begin() {
            *state = (1, now);
            region.lane(pair, false).write(1, &message);
        }
    }
    let mut patience = Patience::default();
    while meter.running(now) {
        let mut idle = true;
        for (pair, (number, began)) in under_way.iter_mut().enumerate() {
            if *number == 0 || region.lane(pair, true).number() != *number {
                continue;
            }
            idle = false;
            region.lane(pair, true).read(&mut back);
            now = clock::now();
            if back == message {
                meter.succeed(*began, now, size as u64, true);
            } else {
                meter.fail(ErrorKind::WrongContent, now);
            }
            if now < meter.window_end() && meter.begin() {
                (*number, *began) = (*number + 1, now);
                region.lane(pair, false).write(*number, &message);
            } else {
                *number = 0;
            }
        }
        if !idle {
            patience.found();
        } else if patience.looked() {
            now = clock::now();
            let kind = if is_gone(&stream) { ErrorKind::Reset } else { ErrorKind::Timeout };
            let late = under_way.iter().any(|(n, began)| *n > 0 && now.since(*began) > meter.timeout());
            if late || kind == ErrorKind::Reset {
                // The pairs have one server between them: all of them have ended, and none begins again.
                under_way.iter().filter(|(n, _)| *n > 0).for_each(|_| meter.fail(kind, now));
                break;
            }
        }
    }
    Ok(Done { connect: None, ..meter.done(clock::process_cpu().since(cpu)) })
}

/// Asks the server for memory, and maps it.
fn attach(spec: &Spec, pairs: usize, size: usize) -> Result<(Region, TcpStream), Refusal> {
    let address = spec.connect.ok_or_else(|| Refusal::BadSpec("\"connect\" is missing".into()))?;
    Region::length(pairs, size)?;
    let errno = |e: std::io::Error| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO));
    let timeout = Duration::from(spec.timeout_ns);
    let mut stream = TcpStream::connect_timeout(&address, timeout)
        .map_err(errno)
        .doing(&format!("connecting to {address}"))?;
    let mut ask = || {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.write_all(&[pairs as u64, size as u64].map(u64::to_le_bytes).concat())?;
        let mut place = [0; 16];
        stream.read_exact(&mut place)?;
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        Ok(format!("/proc/{}/fd/{}", number(&place[..8]), number(&place[8..])))
    };
    let path = ask().map_err(errno).doing("asking the server for memory")?;
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let file = file.map_err(errno).doing(&format!("opening the server's memory, {path}"))?;
    let region = Region::map(&file, pairs, size)?;
    stream.write_all(&[1]).map_err(errno).doing("telling the server that its memory is mapped")?;
    Ok((region, stream))
}

/// The message in words; the last one is filled up with zeros.
fn words(message: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(whole)
    };
    message.chunks(8).map(word).collect()
}
