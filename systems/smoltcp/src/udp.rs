//! Layer `udp`: one socket of the stack for all peers.

use linerate_sdk::netstack::Datagrams;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use std::net::SocketAddr;

/// Bytes per direction: the default of a kernel socket (`net.core.rmem_default`).
const BUFFER: usize = 212_992;
/// Datagrams per buffer, however small: four times the packets received before they are served.
const QUEUE: usize = 256;
/// The largest datagram.
const LARGEST: usize = 65_535;

pub struct Server {
    handle: SocketHandle,
    datagrams: Datagrams,
    datagram: Vec<u8>,
}

impl Server {
    pub fn new(sockets: &mut SocketSet<'static>, at: SocketAddr, datagrams: Datagrams) -> Self {
        let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; QUEUE], vec![0; BUFFER]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.bind(at).expect("the socket is closed and the port not 0");
        Self { handle: sockets.add(socket), datagrams, datagram: vec![0; LARGEST] }
    }

    /// Answers received datagrams, as long as there is room for answers.
    pub fn serve(&mut self, sockets: &mut SocketSet<'_>) {
        let socket = sockets.get_mut::<Socket<'_>>(self.handle);
        while socket.can_recv() && socket.can_send() {
            let Ok((n, from)) = socket.recv_slice(&mut self.datagram) else { return };
            if let Some(answer) = self.datagrams.response(from.endpoint.into(), &self.datagram[..n]) {
                // A datagram without room is lost, as on any path.
                let _ = socket.send_slice(&answer, from);
            }
        }
    }
}
