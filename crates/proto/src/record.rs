//! Records of TLS 1.3 (RFC 8446, section 5), sealed and opened where they lie, by ring.

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use rustls::{ConnectionTrafficSecrets, Error};

/// The longest plaintext of a record.
pub const LARGEST_PLAIN: usize = 1 << 14;
const HEAD: usize = 5;
const TAG: usize = 16;
/// Bytes of a record beyond its plaintext: head, type, tag.
pub const OVERHEAD: usize = HEAD + 1 + TAG;
/// The longest record that a peer may send, with padding and all (section 5.2).
pub const LARGEST_RECORD: usize = HEAD + LARGEST_PLAIN + 256;
/// The keys are updated after this number of records; rustls uses the same number (section 5.5).
const MOST_RECORDS: u64 = 1 << 24;

/// Types of handshake messages that may come later.
pub const NEW_SESSION_TICKET: u8 = 4;
pub const KEY_UPDATE: u8 = 24;

/// The outer type of every encrypted record is application data.
const OUTER: u8 = 23;

/// A record's content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Alert,
    Handshake,
    Data,
}

impl Kind {
    fn bits(self) -> u8 {
        match self {
            Self::Alert => 21,
            Self::Handshake => 22,
            Self::Data => OUTER,
        }
    }
}

/// Not a record, or not one that these keys made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRecord;

/// The length of the record at the start of `bytes`, its head included; `None` if it is not all there.
#[inline]
pub fn length(bytes: &[u8]) -> Option<Result<usize, BadRecord>> {
    let [kind, _, _, high, low, ..] = bytes else { return None };
    let length = HEAD + usize::from(u16::from_be_bytes([*high, *low]));
    // Of handshakes in clear text there are other kinds, and as short ones.
    if !(20..=23).contains(kind) || length > LARGEST_RECORD {
        return Some(Err(BadRecord));
    }
    (bytes.len() >= length).then_some(Ok(length))
}

/// A key and the number of the next record.
#[derive(Debug)]
struct RecordKey {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    sequence: u64,
}

impl RecordKey {
    fn new((sequence, secrets): (u64, ConnectionTrafficSecrets)) -> Result<Self, Error> {
        let (algorithm, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return Err(Error::General("a cipher suite that is none of TLS 1.3".into())),
        };
        let key = UnboundKey::new(algorithm, key.as_ref());
        let key = key.map_err(|_| Error::General("a key of another length".into()))?;
        let mut bytes = [0; NONCE_LEN];
        bytes.copy_from_slice(iv.as_ref());
        Ok(Self { key: LessSafeKey::new(key), iv: bytes, sequence })
    }

    /// The nonce of the next record (section 5.3).
    #[inline]
    fn nonce(&mut self) -> Nonce {
        let mut nonce = self.iv;
        for (byte, sequence) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= sequence;
        }
        self.sequence += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Makes records.
#[derive(Debug)]
pub struct Sealer(RecordKey);

impl Sealer {
    /// With the keys of a handshake.
    ///
    /// # Errors
    /// Keys of another cipher suite.
    pub fn new(secrets: (u64, ConnectionTrafficSecrets)) -> Result<Self, Error> {
        RecordKey::new(secrets).map(Self)
    }

    /// The keys are due for an update.
    #[inline]
    pub fn is_worn_out(&self) -> bool {
        // A send makes some records after it asked.
        self.0.sequence + 64 >= MOST_RECORDS
    }

    /// Makes a record of what `fill` writes, at the start of `room`: its length, or 0 if `fill` writes
    /// nothing or there is no room for a byte.
    #[inline]
    pub fn seal(&mut self, room: &mut [u8], kind: Kind, fill: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let most = room.len().saturating_sub(OVERHEAD).min(LARGEST_PLAIN);
        if most == 0 {
            return 0;
        }
        let plain = fill(&mut room[HEAD..HEAD + most]);
        if plain == 0 {
            return 0;
        }
        let length = plain + 1 + TAG;
        let (head, rest) = room.split_at_mut(HEAD);
        let [high, low] = (length as u16).to_be_bytes();
        head.copy_from_slice(&[OUTER, 3, 3, high, low]);
        rest[plain] = kind.bits();
        let nonce = self.0.nonce();
        let tag = self.0.key.seal_in_place_separate_tag(nonce, Aad::from(&*head), &mut rest[..=plain]);
        let tag = tag.expect("a record is far below the most that a cipher can seal");
        rest[plain + 1..length].copy_from_slice(tag.as_ref());
        HEAD + length
    }

    /// Makes a record of `bytes`: its length, or 0 if it does not fit into `room`.
    pub fn seal_bytes(&mut self, room: &mut [u8], kind: Kind, bytes: &[u8]) -> usize {
        if room.len() < OVERHEAD + bytes.len() {
            return 0;
        }
        self.seal(room, kind, |plain| {
            plain[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        })
    }
}

/// Both ends of one direction with this key, for measuring and testing.
pub fn pair(key: [u8; 16]) -> (Sealer, Opener) {
    let end = || {
        let key = UnboundKey::new(&AES_128_GCM, &key).expect("16 bytes are a key of AES-128");
        RecordKey { key: LessSafeKey::new(key), iv: [9; NONCE_LEN], sequence: 0 }
    };
    (Sealer(end()), Opener(end()))
}

/// Takes records apart.
#[derive(Debug)]
pub struct Opener(RecordKey);

impl Opener {
    /// As [`Sealer::new`].
    ///
    /// # Errors
    /// Keys of another cipher suite.
    pub fn new(secrets: (u64, ConnectionTrafficSecrets)) -> Result<Self, Error> {
        RecordKey::new(secrets).map(Self)
    }

    /// The content of a whole record.
    ///
    /// # Errors
    /// The record is none, or was not made by this key and number.
    #[inline]
    pub fn open<'a>(&mut self, record: &'a mut [u8]) -> Result<(Kind, &'a mut [u8]), BadRecord> {
        let (head, sealed) = record.split_at_mut(HEAD);
        if head[0] != OUTER {
            return Err(BadRecord);
        }
        let nonce = self.0.nonce();
        let plain = self.0.key.open_in_place(nonce, Aad::from(&*head), sealed).map_err(|_| BadRecord)?;
        // The type is the last byte that is not padding.
        let last = plain.iter().rposition(|byte| *byte != 0).ok_or(BadRecord)?;
        if last > LARGEST_PLAIN {
            return Err(BadRecord);
        }
        let kind = match plain[last] {
            21 => Kind::Alert,
            22 => Kind::Handshake,
            OUTER => Kind::Data,
            _ => return Err(BadRecord),
        };
        Ok((kind, &mut plain[..last]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::cipher::{AeadKey, Iv};

    #[test]
    fn records_are_opened_once_and_in_order() {
        let (mut sealer, mut opener) = pair([7; 16]);
        let mut room = [0; 100];
        for (kind, text) in [(Kind::Data, &b"Hello"[..]), (Kind::Alert, &[1, 0])] {
            let made = sealer.seal_bytes(&mut room, kind, text);
            assert_eq!((made, length(&room[..made])), (text.len() + OVERHEAD, Some(Ok(made))));
            assert_eq!(length(&room[..made - 1]), None);
            let mut again = room;
            assert_eq!(opener.open(&mut room[..made]).unwrap(), (kind, &mut text.to_vec()[..]));
            assert_eq!(opener.open(&mut again[..made]), Err(BadRecord));
            opener.0.sequence -= 1;
        }
    }

    #[test]
    fn a_record_without_room_is_not_made() {
        let (mut sealer, mut opener) = pair([7; 16]);
        let mut room = [0; OVERHEAD + 2];
        for short in 0..=OVERHEAD {
            assert_eq!(sealer.seal(&mut room[..short], Kind::Data, |plain| plain.len()), 0, "{short}");
            assert_eq!(sealer.seal_bytes(&mut room[..=short], Kind::Alert, &[1, 0]), 0, "{short}");
        }
        let made = sealer.seal_bytes(&mut room, Kind::Alert, &[1, 0]);
        assert_eq!(made, OVERHEAD + 2);
        assert!(opener.open(&mut room).is_ok(), "no number of a record was used up");
    }

    #[test]
    fn what_was_changed_on_the_way_is_refused() {
        for at in [0, 3, 5, 12] {
            let (mut sealer, mut opener) = pair([7; 16]);
            let mut room = [0; 100];
            let made = sealer.seal_bytes(&mut room, Kind::Data, b"Hello");
            room[at] ^= 1;
            assert_eq!(opener.open(&mut room[..made]), Err(BadRecord), "{at}");
        }
    }

    #[test]
    fn heads_that_no_record_has_are_refused() {
        assert_eq!(length(b"HTTP/1.1 400"), Some(Err(BadRecord)));
        assert_eq!(length(&[23, 3, 3, 0xff, 0xff]), Some(Err(BadRecord)));
        assert_eq!(length(&[23, 3, 3, 0]), None);
    }

    #[test]
    fn every_cipher_suite_of_tls_1_3_seals_and_opens() {
        let suites: [fn() -> ConnectionTrafficSecrets; 2] = [
            || ConnectionTrafficSecrets::Aes256Gcm { key: AeadKey::from([7; 32]), iv: Iv::new([9; 12]) },
            || ConnectionTrafficSecrets::Chacha20Poly1305 {
                key: AeadKey::from([7; 32]),
                iv: Iv::new([9; 12]),
            },
        ];
        for secrets in suites {
            let (mut sealer, mut opener) =
                (Sealer::new((5, secrets())).unwrap(), Opener::new((5, secrets())).unwrap());
            let mut room = [0; 100];
            let made = sealer.seal_bytes(&mut room, Kind::Data, b"Hello");
            assert_eq!(opener.open(&mut room[..made]).unwrap(), (Kind::Data, &mut b"Hello".to_vec()[..]));
        }
    }
}
