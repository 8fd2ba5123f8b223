//! The socket and its connections.

use crate::LONGEST_DATAGRAM;
use linerate_contract::program::{Refusal, emit};
use linerate_contract::{Done, Event, Spec};
use linerate_sdk::missing;
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use quiche::{Config, Connection, ConnectionId, Header, MAX_CONN_ID_LEN, RecvInfo, Type};
use ring::hmac::{HMAC_SHA256, Key, sign};
use ring::rand::SystemRandom;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use std::collections::HashMap;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::{process, thread};

/// The largest datagram that arrives, and the most bytes that leave in one call.
const BUFFER: usize = 65_535;

/// The service on the streams of a connection.
pub trait Service {
    /// After datagrams have arrived.
    ///
    /// # Errors
    /// The connection ends.
    fn turn(&mut self, connection: &mut Connection) -> Result<(), quiche::h3::Error>;
}

struct Peer<S> {
    connection: Connection,
    service: S,
    /// A datagram has arrived in this turn of the loop, or a timer has run out.
    is_due: bool,
}

struct Endpoint<S> {
    socket: UdpSocket,
    address: SocketAddr,
    config: Config,
    peers: HashMap<ConnectionId<'static>, Peer<S>>,
    /// From the id that a client chose to the one that it is given: its first datagrams have its own.
    ids: Key,
}

/// Serves until SIGTERM.
///
/// # Errors
/// [`Refusal`]: no `listen`, or an address that cannot be bound.
pub fn serve<S: Service>(
    spec: &Spec,
    config: Config,
    service: impl Fn() -> S,
) -> Result<Option<Done>, Refusal> {
    let address = spec.listen.ok_or_else(|| missing("listen"))?;
    let ids =
        Key::generate(HMAC_SHA256, &SystemRandom::new()).map_err(|e| io::Error::other(e.to_string()))?;
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(1));
    let mut socket = UdpSocket::bind(address)?;
    poll.registry().register(&mut socket, Token(0), Interest::READABLE)?;
    let address = socket.local_addr()?;
    let mut endpoint = Endpoint { socket, address, config, peers: HashMap::new(), ids };
    let mut signals = Signals::new([SIGTERM])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            process::exit(0);
        }
    });
    emit(&Event::Ready { address });
    loop {
        let timeout = endpoint.peers.values().filter_map(|peer| peer.connection.timeout()).min();
        match poll.poll(&mut events, timeout) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            outcome => outcome?,
        }
        endpoint.receive(&service)?;
        endpoint.send()?;
        endpoint.peers.retain(|_, peer| !peer.connection.is_closed());
    }
}

impl<S: Service> Endpoint<S> {
    /// All datagrams that have arrived.
    fn receive(&mut self, service: &impl Fn() -> S) -> io::Result<()> {
        let mut buffer = [0; BUFFER];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => self.take(&mut buffer[..length], from, service),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// A datagram. One that is no part of a connection, and begins none, is dropped.
    fn take(&mut self, datagram: &mut [u8], from: SocketAddr, service: &impl Fn() -> S) {
        let Ok(header) = Header::from_slice(datagram, MAX_CONN_ID_LEN) else { return };
        let id = if self.peers.contains_key(&header.dcid) {
            header.dcid
        } else {
            ConnectionId::from_vec(sign(&self.ids, &header.dcid).as_ref()[..MAX_CONN_ID_LEN].to_vec())
        };
        if !self.peers.contains_key(&id) {
            let is_first = header.ty == Type::Initial && quiche::version_is_supported(header.version);
            let accepted = is_first.then(|| quiche::accept(&id, None, self.address, from, &mut self.config));
            let Some(Ok(connection)) = accepted else { return };
            self.peers.insert(id.clone(), Peer { connection, service: service(), is_due: false });
        }
        let Some(peer) = self.peers.get_mut(&id) else { return };
        // An error is in the state of the connection, which closes.
        let _ = peer.connection.recv(datagram, RecvInfo { from, to: self.address });
        peer.is_due = true;
    }

    /// The turns of the connections that have something to do, and what they send.
    fn send(&mut self) -> io::Result<()> {
        let mut buffer = [0; BUFFER];
        for peer in self.peers.values_mut() {
            if peer.connection.timeout().is_some_and(|left| left.is_zero()) {
                peer.connection.on_timeout();
                peer.is_due = true;
            }
            if std::mem::take(&mut peer.is_due) {
                if peer.service.turn(&mut peer.connection).is_err() {
                    // It fails on a connection that closes already.
                    let _ = peer.connection.close(true, 1, b"");
                }
                while batch(&self.socket, &mut peer.connection, &mut buffer)? {}
            }
        }
        Ok(())
    }
}

/// Sends datagrams of one length, and a shorter last one, in one call (udp(7), UDP_SEGMENT). False: there was
/// none.
fn batch(socket: &UdpSocket, connection: &mut Connection, buffer: &mut [u8]) -> io::Result<bool> {
    let room = connection.send_quantum().clamp(LONGEST_DATAGRAM, buffer.len());
    let (mut filled, mut target) = (0, None);
    while filled + LONGEST_DATAGRAM <= room {
        // Also after an error: it is in the state of the connection.
        let Ok((length, info)) = connection.send(&mut buffer[filled..filled + LONGEST_DATAGRAM]) else {
            break;
        };
        filled += length;
        target = Some(info.to);
        if length < LONGEST_DATAGRAM {
            break;
        }
    }
    let Some(target) = target else { return Ok(false) };
    let (segment, whole) = (LONGEST_DATAGRAM as u16, [IoSlice::new(&buffer[..filled])]);
    let segments = [ControlMessage::UdpGsoSegments(&segment)];
    let control = if filled > LONGEST_DATAGRAM { &segments[..] } else { &[] };
    let target = SockaddrStorage::from(target);
    match sendmsg(socket.as_raw_fd(), &whole, control, MsgFlags::empty(), Some(&target)) {
        // A full queue loses datagrams, as a network does.
        Ok(_) | Err(nix::Error::EAGAIN) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
