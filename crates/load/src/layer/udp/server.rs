//! The server: one socket for all flows; one thread receives, compares and counts for each flow.

use super::UdpConfig;
use crate::cause::{note, peer_failed, print_peers};
use crate::clock;
use crate::packets::{self, Inbox, OwnAddresses, Received, ReceiverSampler};
use crate::process::{Signals, spawn};
use crate::refusal::Refusal;
use linerate_contract::datagram::{Account, Datagram, HEADER, REPORT_LENGTH};
use linerate_contract::{Cause, ErrorKind, Nanos, Spec};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockaddrStorage, sendto};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Concurrent flows, so that the server's memory is bounded; a client opens a handful.
const MAX_FLOWS: usize = 4_096;
/// A flow without datagrams for this long is over: three times the contract's timeout for an operation.
const IDLE: Nanos = Nanos(30_000_000_000);

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// An invalid spec, or an address that is in use or not of this host.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    let signals = Signals::claim()?;
    let (mut receiver, inbox, address) = FlowReceiver::open(spec)?;
    spawn(move || receiver.run(inbox))?;
    signals.serve(address);
    print_peers();
    Ok(())
}

/// Handles the received datagrams, for this server and a fault injector.
#[derive(Debug)]
pub struct FlowReceiver {
    socket: OwnedFd,
    content: Box<[u8]>,
    /// The content of every n-th datagram is compared.
    every: u64,
    flows: HashMap<SocketAddr, Account>,
    sampler: Option<ReceiverSampler>,
    own: OwnAddresses,
}

impl FlowReceiver {
    /// Opens the socket; returns its inbox and its address as well.
    ///
    /// # Errors
    /// As [`run`].
    pub fn open(spec: &Spec) -> Result<(Self, Inbox, SocketAddr), Refusal> {
        let config = UdpConfig::from_spec(spec)?;
        let every = spec.options.get("every").map_or(Ok(1), |n| n.parse::<u64>());
        let every = every.ok().filter(|n| *n > 0);
        let every =
            every.ok_or_else(|| Refusal::BadSpec("\"options.every\" must be a number above 0".into()))?;
        let (socket, address) = packets::bind(spec, config.mode, false)?;
        let inbox = Inbox::new(config.mode, config.size.max(REPORT_LENGTH));
        let sampler = ReceiverSampler::from_spec(spec);
        let (content, own) = (config.content, OwnAddresses::for_address(address)?);
        let receiver = Self { socket, content, every, flows: HashMap::new(), sampler, own };
        Ok((receiver, inbox, address))
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn forget(&mut self) {
        self.flows.clear();
    }

    /// Where the datagrams arrive.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    fn run(&mut self, mut inbox: Inbox) {
        loop {
            match inbox.receive(&self.socket, true) {
                Ok(_) => {
                    let now = clock::now();
                    inbox.each(|from, bytes| self.take(from, bytes, now));
                    self.sample(now);
                }
                Err(Errno::EAGAIN | Errno::EINTR) => self.sample(clock::now()),
                // An ICMP message about a report whose client has exited; the socket remains usable.
                Err(_) => {}
            }
        }
    }

    /// Takes a datagram that arrived at `now`; responses where it has a response.
    #[inline]
    pub fn take(&mut self, from: SocketAddr, bytes: &[u8], now: Nanos) {
        match Datagram::parse(bytes) {
            Some(Datagram::Payload { sequence }) => {
                let Some(account) = self.flows.get_mut(&from) else { return refuse(bytes) };
                let is_right = bytes.len() == HEADER + self.content.len()
                    && (sequence % self.every != 0 || bytes[HEADER..] == *self.content);
                if is_right {
                    account.good(sequence, bytes.len() as u64, now.0);
                } else {
                    account.damaged();
                    let text = || {
                        format!(
                            "a datagram of {} bytes that is not one of --size {}",
                            bytes.len(),
                            self.content.len() + HEADER
                        )
                    };
                    peer_failed(note(ErrorKind::WrongContent, || Cause::showing(text(), bytes)));
                }
            }
            Some(Datagram::Hello) => {
                if self.own.contains(from) {
                    return;
                }
                if self.flows.len() >= MAX_FLOWS {
                    self.flows.retain(|_, account| now.since(Nanos(account.report().last_ns)) < IDLE);
                }
                if self.flows.len() < MAX_FLOWS || self.flows.contains_key(&from) {
                    self.flows.insert(from, Account::default());
                    if let Some(sampler) = &mut self.sampler {
                        sampler.begin(received(&self.flows));
                    }
                    self.answer(from, Datagram::Welcome);
                }
            }
            Some(Datagram::End { .. }) => {
                if let Some(account) = self.flows.get(&from) {
                    self.answer(from, Datagram::Report(account.report()));
                }
            }
            Some(Datagram::Welcome | Datagram::Report(_)) => {}
            None => refuse(bytes),
        }
    }

    fn answer(&self, to: SocketAddr, datagram: Datagram) {
        // The client repeats its request if the response is lost.
        let _ = sendto(
            self.socket.as_raw_fd(),
            &datagram.to_bytes(),
            &SockaddrStorage::from(to),
            MsgFlags::MSG_NOSIGNAL,
        );
    }

    #[inline]
    fn sample(&mut self, now: Nanos) {
        if let Some(sampler) = self.sampler.as_mut().filter(|sampler| sampler.is_due(now)) {
            sampler.take(now, received(&self.flows));
        }
    }
}

/// A datagram that is of no flow.
#[cold]
fn refuse(bytes: &[u8]) {
    let text = "a datagram that is none of linerate load --stream";
    peer_failed(note(ErrorKind::Malformed, || Cause::showing(text, bytes)));
}

fn received(flows: &HashMap<SocketAddr, Account>) -> Received {
    let none = Received { missing: Some(0), ..Received::default() };
    flows.values().fold(none, |sum, account| {
        let report = account.report();
        let missing = i64::try_from(account.missing()).unwrap_or(i64::MAX);
        Received {
            operations: sum.operations + report.received,
            bytes: sum.bytes + report.bytes,
            missing: sum.missing.map(|sum| sum.saturating_add(missing)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    /// A datagram with a forged source must not begin a conversation of a server with itself.
    #[test]
    fn a_server_of_streams_responses_neither_itself_nor_the_responses_of_a_server() {
        let mut spec = Spec::new(Role::Server, Layer::Udp, Workload::Stream);
        (spec.size, spec.listen) = (64, Some("127.0.0.1:0".parse().unwrap()));
        let (mut receiver, _, own) = FlowReceiver::open(&spec).unwrap();
        let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = other.local_addr().unwrap();
        receiver.take(own, &Datagram::Hello.to_bytes(), Nanos(1));
        receiver.take(from, &Datagram::Welcome.to_bytes(), Nanos(1));
        assert!(receiver.flows.is_empty());
        receiver.take(from, &Datagram::Hello.to_bytes(), Nanos(1));
        let mut response = [0; 100];
        let length = other.recv(&mut response).unwrap();
        assert_eq!(Datagram::parse(&response[..length]), Some(Datagram::Welcome));
    }
}
