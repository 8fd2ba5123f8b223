//! `rr` over UDP, both ends: one datagram, and the same datagram back. If either is lost, the operation times
//! out.
//!
//! A datagram begins with the number of its operation on the socket, so that a duplicate of an earlier
//! response is not taken for the response to a later message.

use crate::cause::{note, note_errno};
use crate::layer::{Flow, Layer, MAX_READS, Progress, Response};
use crate::packets::{self, Inbox, Mode, OwnAddresses};
use crate::process::{Signals, spawn};
use crate::refusal::Refusal;
use crate::socket::connect_error;
use linerate_contract::datagram::LARGEST;
use linerate_contract::{Cause, ErrorKind, Spec, page};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockaddrStorage, recv, send, sendto};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

const NONBLOCKING: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_NOSIGNAL);

/// A client thread's side of the layer.
#[derive(Debug, Clone)]
pub struct UdpEcho {
    spec: Arc<Spec>,
    /// The first bytes are the number of the operation.
    message: Box<[u8]>,
    /// One byte longer than a message, so that a longer datagram is detected.
    buffer: Box<[u8]>,
}

/// A socket connected to its server.
#[derive(Debug)]
pub struct UdpConnection {
    socket: OwnedFd,
    /// The number of the message that was sent last; the first has 1.
    number: u64,
}

impl AsFd for UdpConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Layer for UdpEcho {
    type Connection = UdpConnection;

    fn new(spec: &Spec, _persistent: bool) -> Result<Self, Refusal> {
        if !(1..=LARGEST as u64).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST} bytes")));
        }
        // What the kernel refuses to one, it refuses to all.
        drop(packets::connect(spec, Mode::Single)?);
        let message = page(spec.size as usize);
        let buffer = vec![0; message.len() + 1].into();
        Ok(Self { spec: Arc::new(spec.clone()), message: message.into(), buffer })
    }

    fn open(&mut self) -> Result<UdpConnection, ErrorKind> {
        // `new` has checked everything else.
        let socket =
            packets::connect(&self.spec, Mode::Single).map_err(|_| ErrorKind::DescriptorExhausted)?;
        socket.map(|socket| UdpConnection { socket, number: 0 })
    }

    #[inline]
    fn send(&mut self, connection: &mut UdpConnection) -> Result<Flow, ErrorKind> {
        write_number(&mut self.message, connection.number + 1);
        loop {
            match send(connection.socket.as_raw_fd(), &self.message, NONBLOCKING) {
                Ok(_) => {
                    connection.number += 1;
                    return Ok(Flow::Done);
                }
                Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(refused("sending a datagram", errno)),
            }
        }
    }

    #[inline]
    fn receive(&mut self, connection: &mut UdpConnection) -> Result<Progress, ErrorKind> {
        for _ in 0..MAX_READS {
            match recv(connection.socket.as_raw_fd(), &mut self.buffer, NONBLOCKING) {
                Ok(n) if n != self.message.len() => {
                    let text = format!("a datagram of {n} bytes or more in place of {}", self.message.len());
                    let cause = || Cause::showing(text, &self.buffer[..n]);
                    return Err(note(ErrorKind::WrongLength, cause));
                }
                Ok(n) => match age(&self.buffer[..n], connection.number) {
                    0 if self.buffer[NUMBER.min(n)..n] == self.message[NUMBER.min(n)..] => {
                        let response =
                            Response { bytes: n as u64, verified: true, reusable: true, status: 0 };
                        return Ok(Progress::Complete(response));
                    }
                    // The duplicate of an earlier response.
                    age if age > 0 && age < connection.number => {}
                    _ => {
                        let text = "a datagram with other bytes than were sent";
                        let cause = || Cause::showing(text, &self.buffer[..n]);
                        return Err(note(ErrorKind::WrongContent, cause));
                    }
                },
                Err(Errno::EAGAIN) => return Ok(Progress::Waiting),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(refused("receiving a datagram", errno)),
            }
        }
        Ok(Progress::Unfinished)
    }
}

/// A call is refused: mostly because an ICMP message said that nothing is bound to the port.
#[cold]
fn refused(doing: &str, errno: Errno) -> ErrorKind {
    match errno {
        Errno::ECONNREFUSED => note_errno(ErrorKind::ConnectRefused, doing, errno),
        _ => connect_error(errno),
    }
}

/// Bytes of the number at the start of a datagram; a shorter datagram has its lowest bytes.
const NUMBER: usize = 8;

fn write_number(datagram: &mut [u8], number: u64) {
    let length = NUMBER.min(datagram.len());
    datagram[..length].copy_from_slice(&number.to_le_bytes()[..length]);
}

/// How many operations before `number` a datagram was sent, by the bytes of its number; a response to this
/// operation has the age 0.
fn age(datagram: &[u8], number: u64) -> u64 {
    let length = NUMBER.min(datagram.len());
    let mut bytes = [0; NUMBER];
    bytes[..length].copy_from_slice(&datagram[..length]);
    number.wrapping_sub(u64::from_le_bytes(bytes)) & (u64::MAX >> (64 - 8 * length))
}

/// Returns every datagram to its sender, until SIGTERM or SIGINT.
///
/// # Errors
/// An address that is missing, in use, or not of this host.
pub fn serve(spec: &Spec) -> Result<(), Refusal> {
    let signals = Signals::claim()?;
    let (socket, address) = packets::bind(spec, Mode::Single, false)?;
    let own = OwnAddresses::for_address(address)?;
    let mut inbox = Inbox::new(Mode::Single, LARGEST);
    spawn(move || {
        loop {
            // A timeout, or an ICMP message about a client that has exited; the socket remains usable.
            if inbox.receive(&socket, true).is_err() {
                continue;
            }
            inbox.each(|from, bytes| {
                if own.contains(from) {
                    return;
                }
                // A datagram that the socket does not accept is lost, as on any path.
                let _ = sendto(socket.as_raw_fd(), bytes, &SockaddrStorage::from(from), NONBLOCKING);
            });
        }
    })?;
    signals.serve(address);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_response_is_that_of_its_operation_at_every_length() {
        for length in [1, 2, 3, 7, 8, 9, 100] {
            let mut datagram = vec![b'x'; length];
            for (sent, now, age_in_operations) in [(1, 1, 0), (1, 2, 1), (255, 256, 1), (256, 300, 44)] {
                write_number(&mut datagram, sent);
                assert_eq!(age(&datagram, now), age_in_operations, "{length} bytes, {sent} at {now}");
            }
        }
    }
}
