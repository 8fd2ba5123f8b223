//! Fuzz targets: records behind a handshake, and handshakes.

use super::handshake::{Keys, Later};
use super::{Flow, Open, Received, Room, Sink, Source, TlsAcceptor, TlsConnector, TlsState, TlsWire, Wire};
use crate::fuzz_input::{FuzzInput, connected, drain, put};
use crate::layer::wire::Wires;
use crate::layer::wire::plain::Outbox;
use linerate_contract::ErrorKind;
use linerate_proto::record::{self, Kind, LARGEST_RECORD, Opener, Sealer};
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::{CipherSuite, ConnectionTrafficSecrets, Error, ProtocolVersion, SupportedCipherSuite};
use std::os::fd::OwnedFd;

/// A version and a cipher, and keys by their number.
#[derive(Clone, Copy)]
struct Suite {
    version: ProtocolVersion,
    name: CipherSuite,
}

impl Suite {
    fn chosen(choice: u8) -> Self {
        let (version, name) = match choice & 3 {
            0 => (ProtocolVersion::TLSv1_3, CipherSuite::TLS13_AES_256_GCM_SHA384),
            1 => (ProtocolVersion::TLSv1_2, CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
            2 => (ProtocolVersion::TLSv1_2, CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
            _ => (ProtocolVersion::TLSv1_3, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
        };
        Self { version, name }
    }

    fn is_older(self) -> bool {
        self.version == ProtocolVersion::TLSv1_2
    }

    fn key(self, number: u8) -> (Sealer, Opener) {
        let secrets = || {
            let (key, iv) = (AeadKey::from([number; 32]), Iv::new([9; 12]));
            let secrets = match self.name {
                CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
                | CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
                    ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }
                }
                _ => ConnectionTrafficSecrets::Aes256Gcm { key, iv },
            };
            (0, secrets)
        };
        let both = (Sealer::new(secrets(), self.version), Opener::new(secrets(), self.version));
        (both.0.expect("a cipher with AEAD"), both.1.expect("the same"))
    }
}

/// Numbered keys: those that the engine sends with are above 128.
struct Numbered {
    suite: Suite,
    sends: u8,
    receives: u8,
}

impl Later for Numbered {
    fn next_sealer(&mut self) -> Result<Sealer, Error> {
        self.sends = self.sends.wrapping_add(1) | 128;
        Ok(self.suite.key(self.sends).0)
    }

    fn next_opener(&mut self) -> Result<Opener, Error> {
        self.receives = self.receives.wrapping_add(1) & 127;
        Ok(self.suite.key(self.receives).1)
    }

    fn take_ticket(&mut self, _ticket: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn agreed(&self) -> (ProtocolVersion, SupportedCipherSuite) {
        let suites = rustls::crypto::ring::ALL_CIPHER_SUITES;
        let suite = suites.iter().find(|s| s.suite() == self.suite.name);
        (self.suite.version, *suite.expect("ring has it"))
    }
}

#[derive(Default)]
struct FuzzEnd {
    received: Vec<u8>,
    /// Bytes to be sent in this turn, and in all.
    left: usize,
    sent: u64,
}

impl Sink for FuzzEnd {
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        self.received.extend_from_slice(bytes);
        Ok(())
    }
}

impl Source for FuzzEnd {
    fn prepare(&mut self) -> bool {
        self.left > 0
    }

    fn slices(&self) -> Option<[&[u8]; 2]> {
        None
    }

    fn advance(&mut self, _count: usize) -> bool {
        true
    }

    fn fill(&mut self, room: &mut [u8]) -> usize {
        let count = self.left.min(room.len());
        for byte in &mut room[..count] {
            *byte = self.sent as u8;
            self.sent += 1;
        }
        self.left -= count;
        count
    }
}

/// The peer: its keys, and what it has read.
struct FuzzPeer {
    suite: Suite,
    socket: OwnedFd,
    sealer: Sealer,
    seals: u8,
    opener: Opener,
    opens: u8,
    input: Vec<u8>,
    received: u64,
}

impl FuzzPeer {
    fn seal(&mut self, kind: Kind, plain: &[u8]) -> Vec<u8> {
        let mut room = vec![0; LARGEST_RECORD];
        let length = self.sealer.seal_bytes(&mut room, kind, plain);
        room.truncate(length);
        room
    }

    /// Reads and opens all that the engine has sent.
    fn read(&mut self) {
        self.input.extend(drain(&self.socket));
        let mut from = 0;
        while let Some(length) = record::length(&self.input[from..]) {
            let length = length.expect("the engine sends records");
            let opened = self.opener.open(&mut self.input[from..from + length]);
            from += length;
            match opened.expect("the engine seals with its key") {
                (Kind::Data, plain) => {
                    for byte in plain {
                        assert_eq!(*byte, self.received as u8);
                        self.received += 1;
                    }
                }
                (Kind::Handshake, message) => {
                    assert_eq!(message, [record::KEY_UPDATE, 0, 0, 1, 0]);
                    self.opens = self.opens.wrapping_add(1) | 128;
                    self.opener = self.suite.key(self.opens).1;
                }
                (Kind::Alert, _) => {}
            }
        }
        self.input.drain(..from);
    }
}

/// Records of a peer that knows the keys, in TLS 1.3 or 1.2 by the first byte: data, handshake messages,
/// alerts, changed records, and other bytes.
pub fn fuzz_records(input: &[u8]) {
    let mut input = FuzzInput(input);
    let Some(choice) = input.byte() else { return };
    let suite = Suite::chosen(choice);
    let (socket, peer) = connected();
    let keys = Keys::from_later(Box::new(Numbered { suite, sends: 128, receives: 0 }));
    let mut wire = TlsWire {
        input: vec![0; (16 << 10) + LARGEST_RECORD].into(),
        from: 0,
        to: 0,
        output: Outbox::new(record::LARGEST_PLAIN + record::OVERHEAD),
        state: TlsState::Open(Box::new(Open::new(suite.key(128).0, suite.key(0).1, keys))),
        ended: false,
        keeps_tickets: false,
        resumed: None,
    };
    let mut peer = FuzzPeer {
        suite,
        socket: peer,
        sealer: suite.key(0).0,
        seals: 0,
        opener: suite.key(128).1,
        opens: 128,
        input: Vec::new(),
        received: 0,
    };
    let (mut engine, mut expected, mut good) = (FuzzEnd::default(), Vec::new(), true);
    while let Some(choice) = input.byte() {
        let bytes = input.field();
        let sealed = match choice & 7 {
            0..=2 => {
                expected.extend_from_slice(bytes);
                peer.seal(Kind::Data, bytes)
            }
            3 => {
                let asked = bytes.first().copied().unwrap_or(1) & 1;
                let sealed = peer.seal(Kind::Handshake, &[record::KEY_UPDATE, 0, 0, 1, asked]);
                peer.seals = (peer.seals + 1) & 127;
                peer.sealer = suite.key(peer.seals).0;
                sealed
            }
            4 => peer.seal(Kind::Handshake, bytes),
            5 => peer.seal(Kind::Alert, bytes),
            6 => bytes.to_vec(),
            _ => {
                let mut sealed = peer.seal(Kind::Data, bytes);
                let at = usize::from(choice >> 3).min(sealed.len().saturating_sub(1));
                sealed.get_mut(at).into_iter().for_each(|byte| *byte ^= 1);
                sealed
            }
        };
        // TLS 1.2 has no KeyUpdate.
        good &= choice & 7 < if suite.is_older() { 3 } else { 4 };
        put(&peer.socket, &sealed);
        if choice & 64 == 0 {
            continue;
        }
        engine.left = usize::from(choice) << 6;
        if !turn(&mut wire, &socket, &mut engine) {
            break;
        }
        if choice & 128 == 0 {
            peer.read();
        }
    }
    turn(&mut wire, &socket, &mut engine);
    peer.read();
    assert!(expected.starts_with(&engine.received) || !good);
}

/// Receives and sends; false after a failure.
fn turn(wire: &mut TlsWire, socket: &OwnedFd, engine: &mut FuzzEnd) -> bool {
    loop {
        match wire.receive(socket, &mut [], engine) {
            Ok(Received::More | Received::Drained) => {}
            Ok(Received::Nothing) => break,
            Ok(Received::End) => {
                wire.end();
                break;
            }
            Err(_) => return false,
        }
    }
    wire.send(socket, engine).is_ok()
}

/// Handshakes: bytes to one end, or a handshake of both ends in which one byte is changed on its way.
pub fn fuzz_handshake(acceptor: &TlsAcceptor, connector: &TlsConnector, input: &[u8]) {
    let mut input = FuzzInput(input);
    let Some(choice) = input.byte() else { return };
    let room = Room { input: 16 << 10, records: 1 };
    let mut server = acceptor.wire(room).expect("random numbers");
    let mut client = connector.wire(room).expect("random numbers");
    let ((near, near_peer), (far, far_peer)) = (connected(), connected());
    if choice & 3 < 2 {
        let wire = if choice & 1 == 0 { &mut server } else { &mut client };
        for piece in input.0.chunks(usize::from(choice >> 2) * 8 + 1) {
            put(&near_peer, piece);
            if wire.establish(&near).is_err() {
                return;
            }
        }
        return;
    }
    let at = input.take(2).iter().fold(0, |at, byte| at << 8 | usize::from(*byte));
    let (changed, flip) = (choice & 1, input.byte().unwrap_or(0));
    let mut moved = [0, 0];
    for _ in 0..100 {
        let outcomes = [client.establish(&near), server.establish(&far)];
        if outcomes.iter().any(Result::is_err) {
            return;
        }
        let mut idle = true;
        for (side, (from, to)) in [(&near_peer, &far_peer), (&far_peer, &near_peer)].into_iter().enumerate() {
            let mut bytes = drain(from);
            if side == usize::from(changed) && (moved[side]..moved[side] + bytes.len()).contains(&at) {
                bytes[at - moved[side]] ^= flip;
            }
            moved[side] += bytes.len();
            idle &= bytes.is_empty();
            put(to, &bytes);
        }
        if idle {
            let done = outcomes.iter().all(|outcome| *outcome == Ok(Flow::Done));
            assert!(done || flip != 0, "both ends agree");
            return;
        }
    }
    panic!("a handshake without end");
}
