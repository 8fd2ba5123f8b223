//! Records of TLS 1.3 (RFC 8446, section 5), sealed and opened where they lie, by ring. Those of TLS 1.2 with
//! the same ciphers (RFC 5288, RFC 7905) are here too, for servers that have no later version.

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use rustls::{ConnectionTrafficSecrets, Error, ProtocolVersion};

/// The longest plaintext of a record.
pub const LARGEST_PLAIN: usize = 1 << 14;
const HEAD: usize = 5;
const TAG: usize = 16;
/// Bytes of a record beyond its plaintext: head, type, tag.
pub const OVERHEAD: usize = HEAD + 1 + TAG;
/// Bytes of the nonce that a record of TLS 1.2 with AES-GCM has (RFC 5288, section 3).
const EXPLICIT: usize = 8;
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

    #[inline]
    fn from_bits(bits: u8) -> Result<Self, BadRecord> {
        Ok(match bits {
            21 => Self::Alert,
            22 => Self::Handshake,
            OUTER => Self::Data,
            _ => return Err(BadRecord),
        })
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

/// How a record is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// TLS 1.3: the type is behind the plaintext, and what is authenticated is the head.
    Inner,
    /// TLS 1.2: the type is in the head; so many bytes of the nonce are before the ciphertext.
    Outer(usize),
}

impl Form {
    /// Bytes of a record beyond its plaintext.
    #[inline]
    fn overhead(self) -> usize {
        match self {
            Self::Inner => OVERHEAD,
            Self::Outer(explicit) => HEAD + explicit + TAG,
        }
    }
}

/// A key and the number of the next record.
#[derive(Debug)]
struct RecordKey {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    sequence: u64,
    form: Form,
}

impl RecordKey {
    fn new(
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
        version: ProtocolVersion,
    ) -> Result<Self, Error> {
        let form = match (version, &secrets) {
            (ProtocolVersion::TLSv1_3, _) => Form::Inner,
            (_, ConnectionTrafficSecrets::Chacha20Poly1305 { .. }) => Form::Outer(0),
            _ => Form::Outer(EXPLICIT),
        };
        let (algorithm, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return Err(Error::General("a cipher suite without AEAD".into())),
        };
        let key = UnboundKey::new(algorithm, key.as_ref());
        let key = key.map_err(|_| Error::General("a key of another length".into()))?;
        let mut bytes = [0; NONCE_LEN];
        bytes.copy_from_slice(iv.as_ref());
        Ok(Self { key: LessSafeKey::new(key), iv: bytes, sequence, form })
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

    /// Bytes that TLS 1.2 authenticates beside the next record's ciphertext (RFC 5246, section 6.2.3.3).
    fn additional(&self, kind: u8, plain: usize) -> Aad<[u8; 13]> {
        let mut bytes = [0; 13];
        bytes[..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..11].copy_from_slice(&[kind, 3, 3]);
        bytes[11..].copy_from_slice(&(plain as u16).to_be_bytes());
        Aad::from(bytes)
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
    pub fn new(secrets: (u64, ConnectionTrafficSecrets), version: ProtocolVersion) -> Result<Self, Error> {
        RecordKey::new(secrets, version).map(Self)
    }

    /// The keys are due for an update. TLS 1.2 has none, and its servers carry on, too.
    #[inline]
    pub fn is_worn_out(&self) -> bool {
        // A send makes some records after it asked.
        self.0.sequence + 64 >= MOST_RECORDS && self.0.form == Form::Inner
    }

    /// Makes a record of what `fill` writes, at the start of `room`: its length, or 0 if `fill` writes
    /// nothing or there is no room for a byte.
    #[inline]
    pub fn seal(&mut self, room: &mut [u8], kind: Kind, fill: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let most = room.len().saturating_sub(self.0.form.overhead()).min(LARGEST_PLAIN);
        if most == 0 {
            return 0;
        }
        if let Form::Outer(explicit) = self.0.form {
            let plain = fill(&mut room[HEAD + explicit..HEAD + explicit + most]);
            return if plain == 0 { 0 } else { self.seal_outer(room, kind, explicit, plain) };
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

    /// Makes a record of TLS 1.2 of the plaintext that lies behind its head and nonce; returns its length.
    #[cold]
    fn seal_outer(&mut self, room: &mut [u8], kind: Kind, explicit: usize, plain: usize) -> usize {
        let length = explicit + plain + TAG;
        let [high, low] = (length as u16).to_be_bytes();
        room[..HEAD].copy_from_slice(&[kind.bits(), 3, 3, high, low]);
        let (additional, nonce) = (self.0.additional(kind.bits(), plain), self.0.nonce());
        let (before, sealed) = room[HEAD..].split_at_mut(explicit);
        before.copy_from_slice(&nonce.as_ref()[NONCE_LEN - explicit..]);
        let tag = self.0.key.seal_in_place_separate_tag(nonce, additional, &mut sealed[..plain]);
        let tag = tag.expect("a record is far below the most that a cipher can seal");
        sealed[plain..plain + TAG].copy_from_slice(tag.as_ref());
        HEAD + length
    }

    /// Makes a record of `bytes`: its length, or 0 if it does not fit into `room`.
    pub fn seal_bytes(&mut self, room: &mut [u8], kind: Kind, bytes: &[u8]) -> usize {
        if room.len() < self.0.form.overhead() + bytes.len() {
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
        RecordKey { key: LessSafeKey::new(key), iv: [9; NONCE_LEN], sequence: 0, form: Form::Inner }
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
    pub fn new(secrets: (u64, ConnectionTrafficSecrets), version: ProtocolVersion) -> Result<Self, Error> {
        RecordKey::new(secrets, version).map(Self)
    }

    /// The content of a whole record.
    ///
    /// # Errors
    /// The record is none, or was not made by this key and number.
    #[inline]
    pub fn open<'a>(&mut self, record: &'a mut [u8]) -> Result<(Kind, &'a mut [u8]), BadRecord> {
        if let Form::Outer(explicit) = self.0.form {
            return self.open_outer(record, explicit);
        }
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
        let kind = Kind::from_bits(plain[last])?;
        Ok((kind, &mut plain[..last]))
    }

    /// The content of a whole record of TLS 1.2.
    #[cold]
    fn open_outer<'a>(
        &mut self,
        record: &'a mut [u8],
        explicit: usize,
    ) -> Result<(Kind, &'a mut [u8]), BadRecord> {
        let (head, sealed) = record.split_at_mut(HEAD);
        let kind = Kind::from_bits(head[0])?;
        let length = sealed.len().checked_sub(explicit + TAG).ok_or(BadRecord)?;
        if head[1..3] != [3, 3] || length > LARGEST_PLAIN {
            return Err(BadRecord);
        }
        let (before, sealed) = sealed.split_at_mut(explicit);
        let (additional, nonce) = (self.0.additional(head[0], length), self.0.nonce());
        // A peer chooses its own nonces where they are in the record.
        let mut bytes = *nonce.as_ref();
        bytes[NONCE_LEN - explicit..].copy_from_slice(before);
        let nonce = Nonce::assume_unique_for_key(bytes);
        let plain = self.0.key.open_in_place(nonce, additional, sealed).map_err(|_| BadRecord)?;
        Ok((kind, plain))
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

    /// Secrets of each cipher.
    const SUITES: [fn() -> ConnectionTrafficSecrets; 2] = [
        || ConnectionTrafficSecrets::Aes256Gcm { key: AeadKey::from([7; 32]), iv: Iv::new([9; 12]) },
        || ConnectionTrafficSecrets::Chacha20Poly1305 { key: AeadKey::from([7; 32]), iv: Iv::new([9; 12]) },
    ];

    #[test]
    fn every_cipher_suite_of_both_versions_seals_and_opens() {
        for (version, overheads) in
            [(ProtocolVersion::TLSv1_3, [OVERHEAD; 2]), (ProtocolVersion::TLSv1_2, [29, 21])]
        {
            for (secrets, overhead) in SUITES.into_iter().zip(overheads) {
                let mut sealer = Sealer::new((5, secrets()), version).unwrap();
                let mut opener = Opener::new((5, secrets()), version).unwrap();
                let mut room = [0; 100];
                for (kind, text) in [(Kind::Data, &b"Hello"[..]), (Kind::Alert, &[1, 0])] {
                    let made = sealer.seal_bytes(&mut room, kind, text);
                    assert_eq!((made, length(&room[..made])), (text.len() + overhead, Some(Ok(made))));
                    assert_eq!(opener.open(&mut room[..made]).unwrap(), (kind, &mut text.to_vec()[..]));
                }
            }
        }
    }

    #[test]
    fn a_record_of_tls_1_2_that_was_changed_or_is_short_is_refused() {
        for secrets in SUITES {
            let ends = || {
                let version = ProtocolVersion::TLSv1_2;
                let opener = Opener::new((0, secrets()), version).unwrap();
                (Sealer::new((0, secrets()), version).unwrap(), opener)
            };
            let mut room = [0; 100];
            let made = ends().0.seal_bytes(&mut room, Kind::Data, b"Hello");
            for at in 0..made {
                let mut changed = room;
                changed[at] ^= 1;
                // The length is the caller's, and is compared by `length`.
                assert_eq!(ends().1.open(&mut changed[..made]).is_err(), !(3..5).contains(&at), "{at}");
            }
            for end in HEAD..made {
                let mut short = room;
                assert_eq!(ends().1.open(&mut short[..end]), Err(BadRecord), "{end}");
            }
        }
    }
}
