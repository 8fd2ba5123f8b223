//! `rr` over UDP, both ends: one datagram, and the same datagram back. If either is lost, the operation times
//! out.

use crate::layer::{Answer, Flow, Layer, Reply};
use crate::packets::{self, Inbox, Mode};
use crate::process::{Signals, emit};
use crate::refusal::Refusal;
use crate::socket::connect_error;
use linerate_contract::datagram::LARGEST;
use linerate_contract::{ErrorKind, Event, Spec, page};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockaddrStorage, recv, send, sendto};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

const NONBLOCKING: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_NOSIGNAL);

/// A client thread's side of the layer.
#[derive(Debug, Clone)]
pub struct UdpEcho {
    spec: Arc<Spec>,
    message: Arc<[u8]>,
    /// One byte longer than a message, so that a longer datagram is detected.
    buffer: Box<[u8]>,
}

/// A socket connected to its server.
#[derive(Debug)]
pub struct UdpConnection(OwnedFd);

impl AsFd for UdpConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Layer for UdpEcho {
    type Connection = UdpConnection;

    fn new(spec: &Spec, _persistent: bool) -> Result<Self, Refusal> {
        if !(1..=LARGEST as u64).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST} bytes")));
        }
        if spec.connect.is_none() {
            return Err(Refusal::BadSpec("\"connect\" is missing".into()));
        }
        let message = page(spec.size as usize);
        let buffer = vec![0; message.len() + 1].into();
        Ok(Self { spec: Arc::new(spec.clone()), message: message.into(), buffer })
    }

    fn open(&mut self) -> Result<UdpConnection, ErrorKind> {
        // `new` has checked everything else.
        let socket =
            packets::connect(&self.spec, Mode::Single).map_err(|_| ErrorKind::DescriptorExhausted)?;
        socket.map(UdpConnection)
    }

    #[inline]
    fn send(&mut self, connection: &mut UdpConnection) -> Result<Flow, ErrorKind> {
        loop {
            match send(connection.0.as_raw_fd(), &self.message, NONBLOCKING) {
                Ok(_) => return Ok(Flow::Done),
                Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(connect_error(errno)),
            }
        }
    }

    #[inline]
    fn receive(&mut self, connection: &mut UdpConnection) -> Result<Reply, ErrorKind> {
        loop {
            match recv(connection.0.as_raw_fd(), &mut self.buffer, NONBLOCKING) {
                Ok(n) if n != self.message.len() => return Err(ErrorKind::WrongLength),
                Ok(n) if self.buffer[..n] != *self.message => return Err(ErrorKind::WrongContent),
                Ok(n) => {
                    let answer = Answer { bytes: n as u64, verified: true, reusable: true };
                    return Ok(Reply::Complete(answer));
                }
                Err(Errno::EAGAIN) => return Ok(Reply::Waiting),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(connect_error(errno)),
            }
        }
    }
}

/// Returns every datagram to its sender, until SIGTERM or SIGINT.
///
/// # Errors
/// An address that is missing, in use, or not of this host.
pub fn serve(spec: &Spec) -> Result<(), Refusal> {
    let signals = Signals::claim()?;
    let (socket, address) = packets::bind(spec, Mode::Single)?;
    let mut inbox = Inbox::new(Mode::Single, LARGEST);
    std::thread::spawn(move || {
        loop {
            // A timeout, or an ICMP message about a client that has exited; the socket remains usable.
            if inbox.receive(&socket, true).is_err() {
                continue;
            }
            inbox.each(|from, bytes| {
                // A datagram that the socket does not accept is lost, as on any path.
                let _ = sendto(socket.as_raw_fd(), bytes, &SockaddrStorage::from(from), NONBLOCKING);
            });
        }
    });
    emit(&Event::Ready { address });
    signals.wait();
    Ok(())
}
