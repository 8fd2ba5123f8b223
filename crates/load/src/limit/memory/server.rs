//! The server: a thread for each client, which looks at its lanes until the client is gone.

use super::region::Region;
use super::{Patience, is_gone};
use crate::process::{Signals, emit};
use crate::refusal::{Doing, Refusal};
use linerate_contract::{Event, Spec};
use nix::errno::Errno;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// When there is no descriptor for a waiting client.
const REST: Duration = Duration::from_millis(10);
/// A client says what it wants at once, or never.
const GREETING: Duration = Duration::from_secs(5);

/// Serves until SIGTERM.
pub(in crate::limit) fn serve(spec: &Spec) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let signals = Signals::claim()?;
    let errno = |e: std::io::Error| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO));
    let listener = TcpListener::bind(address).map_err(errno).doing(&format!("listening at {address}"))?;
    let address = listener.local_addr().map_err(errno).doing("getsockname")?;
    std::thread::spawn(move || {
        loop {
            match listener.accept() {
                // A client that vanishes, or asks for what cannot be, ends its thread and nothing else.
                Ok((stream, _)) => drop(std::thread::spawn(move || attend(stream).ok())),
                Err(_) => std::thread::sleep(REST),
            }
        }
    });
    emit(&Event::Ready { address });
    signals.wait();
    Ok(())
}

fn attend(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(GREETING))?;
    let mut asked = [0; 16];
    stream.read_exact(&mut asked)?;
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes")) as usize;
    let (pairs, size) = (number(&asked[..8]), number(&asked[8..]));
    let refused = |e: Refusal| std::io::Error::other(e.to_string());
    let file = Region::create(pairs, size).map_err(refused)?;
    let region = Region::map(&file, pairs, size).map_err(refused)?;
    let place = [u64::from(std::process::id()), file.as_raw_fd() as u64];
    stream.write_all(&place.map(u64::to_le_bytes).concat())?;
    // One byte: the client has mapped it.
    stream.read_exact(&mut [0])?;
    echo(&region, pairs, size, &stream);
    Ok(())
}

fn echo(region: &Region, pairs: usize, size: usize, stream: &TcpStream) {
    let mut lanes: Vec<_> =
        (0..pairs).map(|p| (region.lane(p, false), region.lane(p, true), 0_u64)).collect();
    let mut words = vec![0; size.div_ceil(8)];
    let mut patience = Patience::default();
    loop {
        let mut idle = true;
        for (there, back, seen) in &mut lanes {
            let number = there.number();
            if number != *seen {
                *seen = number;
                there.read(&mut words);
                back.write(number, &words);
                idle = false;
            }
        }
        if !idle {
            patience.found();
        } else if patience.looked() && is_gone(stream) {
            return;
        }
    }
}
