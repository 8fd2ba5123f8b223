//! The server's side of one connection, without blocking: bytes are compared and made in the stack's own
//! buffers.

use linerate_sdk::netstack::Service;
use linerate_sdk::stream::Stream;
use smoltcp::socket::tcp::{Socket, State};

/// One turn of an echo moves up to this many bytes: the buffer of the other echo servers.
const ECHO_BUFFER: usize = 64 << 10;

/// The current transfer.
#[derive(Debug, Default)]
pub struct Connection {
    /// Its number of bytes, once it has arrived.
    bytes: Option<u64>,
    sent: u64,
    received: u64,
    good: u64,
}

impl Connection {
    /// Reads and writes as much as possible, and closes a finished connection.
    pub fn advance(&mut self, socket: &mut Socket<'_>, service: &Service) {
        if matches!(socket.state(), State::Listen | State::SynReceived) {
            return;
        }
        match service {
            Service::Echo => echo(socket),
            Service::Stream(stream) => {
                while self.transfer(socket, stream) {
                    *self = Self::default();
                }
            }
        }
    }

    /// Continues a transfer; true if it is over.
    fn transfer(&mut self, socket: &mut Socket<'_>, stream: &Stream) -> bool {
        let Some(bytes) = self.number(socket) else { return false };
        let unless = |used| if used { bytes } else { 0 };
        let (wanted, expected) = (unless(stream.client_reads), unless(stream.client_writes));
        self.push(socket, stream, wanted);
        self.pull(socket, stream, expected);
        let has_ended = !socket.may_recv();
        // The end of the client's side ends a transfer by time, and no other.
        let is_received = self.received == expected || (has_ended && bytes == u64::MAX);
        if has_ended && !is_received {
            socket.close();
            return false;
        }
        self.sent == wanted && is_received && (!stream.client_writes || self.answer(socket))
    }

    /// The number before the content; closes if the peer has ended without one.
    fn number(&mut self, socket: &mut Socket<'_>) -> Option<u64> {
        let mut number = [0; 8];
        if self.bytes.is_none() && socket.peek_slice(&mut number) == Ok(8) {
            self.bytes = Some(u64::from_le_bytes(number));
            // The peek has found all 8 bytes.
            let _ = socket.recv_slice(&mut number);
        } else if self.bytes.is_none() && !socket.may_recv() {
            socket.close();
        }
        self.bytes
    }

    fn push(&mut self, socket: &mut Socket<'_>, stream: &Stream, bytes: u64) {
        while self.sent < bytes && socket.can_send() {
            let most = (bytes - self.sent).min(stream.size as u64) as usize;
            let written = socket.send(|room| {
                let n = room.len().min(most);
                room[..n].copy_from_slice(stream.content.at(self.sent, n));
                (n, n as u64)
            });
            self.sent += written.unwrap_or(0);
        }
    }

    fn pull(&mut self, socket: &mut Socket<'_>, stream: &Stream, bytes: u64) {
        while self.received < bytes && socket.can_recv() {
            let most = (bytes - self.received).min(stream.size as u64) as usize;
            let read = socket.recv(|piece| {
                let n = piece.len().min(most);
                (n, (n as u64, stream.content.good(self.received, &piece[..n])))
            });
            let (n, good) = read.unwrap_or((0, 0));
            self.received += n;
            self.good += good;
        }
    }

    /// Answers with the number of good bytes; false if there is no room for it.
    fn answer(&self, socket: &mut Socket<'_>) -> bool {
        let fits = socket.can_send() && socket.send_capacity() - socket.send_queue() >= 8;
        fits && socket.send_slice(&self.good.to_le_bytes()) == Ok(8)
    }
}

fn echo(socket: &mut Socket<'_>) {
    let mut buffer = [0; ECHO_BUFFER];
    while socket.can_recv() && socket.can_send() {
        let room = (socket.send_capacity() - socket.send_queue()).min(ECHO_BUFFER);
        let Ok(n) = socket.recv_slice(&mut buffer[..room]) else { return };
        // The room was checked above.
        let _ = socket.send_slice(&buffer[..n]);
    }
    if !socket.may_recv() && !socket.can_recv() {
        socket.close();
    }
}
