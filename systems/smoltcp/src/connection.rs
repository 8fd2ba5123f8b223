//! What a server does with one connection, without waiting: bytes are compared where the stack put them, and made where it takes
//! them from.

use linerate_netstack::{Setting, Work};
use smoltcp::socket::tcp::{Socket, State};

/// A turn of an echo moves so much: what the other echo servers read at once.
const ECHO_BUFFER: usize = 64 << 10;

#[derive(Debug, Default)]
pub struct Connection {
    /// How much the client wants, once it has said so.
    wanted: Option<u64>,
    sent: u64,
    received: u64,
    good: u64,
}

impl Connection {
    /// Reads and writes what can be, and closes what is done.
    pub fn advance(&mut self, socket: &mut Socket<'_>, work: &Work) {
        if matches!(socket.state(), State::Listen | State::SynReceived) {
            return;
        }
        match work {
            Work::Echo => echo(socket),
            Work::Stream(setting) => self.stream(socket, setting),
        }
    }

    fn stream(&mut self, socket: &mut Socket<'_>, setting: &Setting) {
        if setting.counted {
            while self.transfer(socket, setting) {
                *self = Self::default();
            }
            return;
        }
        if setting.client_reads && !self.learn_wanted(socket) {
            return;
        }
        let all = self.wanted.unwrap_or(0);
        self.push(socket, setting, all);
        self.pull(socket, setting, u64::MAX);
        if self.sent < all || !socket.may_send() {
            return;
        }
        if !setting.client_writes {
            socket.close();
        } else if !socket.may_recv() && self.count(socket) {
            socket.close();
        }
    }

    /// Goes on with a counted transfer; true if it is over.
    fn transfer(&mut self, socket: &mut Socket<'_>, setting: &Setting) -> bool {
        if !self.learn_wanted(socket) {
            return false;
        }
        let all = self.wanted.unwrap_or(0);
        if setting.client_reads {
            self.push(socket, setting, all);
            return self.sent == all;
        }
        self.pull(socket, setting, all);
        if self.received < all && !socket.may_recv() {
            socket.close();
        }
        self.received == all && self.count(socket)
    }

    /// Takes the number that goes before the content; closes where the peer has ended without one.
    fn learn_wanted(&mut self, socket: &mut Socket<'_>) -> bool {
        let mut number = [0; 8];
        if self.wanted.is_none() && socket.peek_slice(&mut number) == Ok(8) {
            self.wanted = Some(u64::from_le_bytes(number));
            // They are there: they were looked at a line above.
            let _ = socket.recv_slice(&mut number);
        } else if self.wanted.is_none() && !socket.may_recv() {
            socket.close();
        }
        self.wanted.is_some()
    }

    fn push(&mut self, socket: &mut Socket<'_>, setting: &Setting, all: u64) {
        while self.sent < all && socket.can_send() {
            let most = (all - self.sent).min(setting.size as u64) as usize;
            let written = socket.send(|room| {
                let n = room.len().min(most);
                room[..n].copy_from_slice(setting.at(self.sent, n));
                (n, n as u64)
            });
            self.sent += written.unwrap_or(0);
        }
    }

    fn pull(&mut self, socket: &mut Socket<'_>, setting: &Setting, all: u64) {
        while self.received < all && socket.can_recv() {
            let most = (all - self.received).min(setting.size as u64) as usize;
            let read = socket.recv(|bytes| {
                let n = bytes.len().min(most);
                (n, (n as u64, setting.good(self.received, &bytes[..n])))
            });
            let (n, good) = read.unwrap_or((0, 0));
            self.received += n;
            self.good += good;
        }
    }

    /// Answers with the number of good bytes, if there is room for it.
    fn count(&self, socket: &mut Socket<'_>) -> bool {
        let fits = socket.can_send() && socket.send_capacity() - socket.send_queue() >= 8;
        fits && socket.send_slice(&self.good.to_le_bytes()) == Ok(8)
    }
}

fn echo(socket: &mut Socket<'_>) {
    let mut buffer = [0; ECHO_BUFFER];
    while socket.can_recv() && socket.can_send() {
        let room = (socket.send_capacity() - socket.send_queue()).min(ECHO_BUFFER);
        let Ok(n) = socket.recv_slice(&mut buffer[..room]) else { return };
        // As much as there was room for.
        let _ = socket.send_slice(&buffer[..n]);
    }
    if !socket.may_recv() && !socket.can_recv() {
        socket.close();
    }
}
