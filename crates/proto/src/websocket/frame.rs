//! The head of a frame (RFC 6455, section 5.2).

use super::mask::Key;
use super::{Broken, End};

/// The longest head: two bytes, eight of length, four of key.
pub const LONGEST_HEAD: usize = 14;
/// The longest payload of a control frame (section 5.5).
pub const LONGEST_CONTROL: usize = 125;

/// The kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    #[inline]
    pub fn is_control(self) -> bool {
        self.bits() >= 8
    }
}

/// A head, parsed or to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    pub last: bool,
    pub opcode: Opcode,
    pub length: u64,
    /// `None`: not masked.
    pub key: Option<Key>,
}

impl FrameHead {
    /// Parses the head at the start of `bytes`, sent to `end`, and returns it with its length; `None` if it
    /// is incomplete.
    ///
    /// # Errors
    /// An invalid head. It is detected as soon as the invalid byte arrives.
    #[inline]
    pub fn parse(bytes: &[u8], end: End) -> Result<Option<(Self, usize)>, Broken> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        let opcode = Opcode::from_bits(first & 0x0f).ok_or(Broken::Protocol)?;
        let (last, short, masked) = (first & 0x80 != 0, second & 0x7f, second & 0x80 != 0);
        let reserved = first & 0x70 != 0;
        let bad_control = opcode.is_control() && (!last || usize::from(short) > LONGEST_CONTROL);
        if reserved || bad_control || masked != (end == End::Server) {
            return Err(Broken::Protocol);
        }
        let (length, used) = match short {
            126 => {
                let Some(bytes) = rest.first_chunk::<2>() else { return Ok(None) };
                (u64::from(u16::from_be_bytes(*bytes)), 2)
            }
            127 => {
                let Some(bytes) = rest.first_chunk::<8>() else { return Ok(None) };
                (u64::from_be_bytes(*bytes), 8)
            }
            short => (u64::from(short), 0),
        };
        let minimal = match used {
            2 => length > LONGEST_CONTROL as u64,
            8 => length > u64::from(u16::MAX) && length >> 63 == 0,
            _ => true,
        };
        if !minimal {
            return Err(Broken::Protocol);
        }
        if !masked {
            return Ok(Some((Self { last, opcode, length, key: None }, 2 + used)));
        }
        let Some(key) = rest[used..].first_chunk::<4>() else { return Ok(None) };
        Ok(Some((Self { last, opcode, length, key: Some(Key::new(*key)) }, 2 + used + 4)))
    }

    /// Writes the head; how many bytes it has.
    #[inline]
    pub fn write(&self, to: &mut [u8; LONGEST_HEAD]) -> usize {
        to[0] = u8::from(self.last) << 7 | self.opcode.bits();
        let masked = u8::from(self.key.is_some()) << 7;
        let mut used = match self.length {
            0..=125 => {
                to[1] = masked | self.length as u8;
                2
            }
            126..=0xffff => {
                to[1] = masked | 126;
                to[2..4].copy_from_slice(&(self.length as u16).to_be_bytes());
                4
            }
            _ => {
                to[1] = masked | 127;
                to[2..10].copy_from_slice(&self.length.to_be_bytes());
                10
            }
        };
        if let Some(key) = self.key {
            to[used..used + 4].copy_from_slice(&key.bytes());
            used += 4;
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heads() -> impl Strategy<Value = FrameHead> {
        let opcode = prop::sample::select(vec![
            Opcode::Continuation,
            Opcode::Text,
            Opcode::Binary,
            Opcode::Close,
            Opcode::Ping,
            Opcode::Pong,
        ]);
        (any::<bool>(), opcode, any::<Option<[u8; 4]>>(), any::<u64>(), 0_u32..63).prop_map(
            |(last, opcode, key, length, shift)| {
                let length = length >> (1 + shift);
                let control = opcode.is_control();
                FrameHead {
                    last: last || control,
                    opcode,
                    length: if control { length % 126 } else { length },
                    key: key.map(Key::new),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_never_from_a_part_of_it(head in heads()) {
            let end = if head.key.is_some() { End::Server } else { End::Client };
            let mut bytes = [0; LONGEST_HEAD];
            let length = head.write(&mut bytes);
            prop_assert_eq!(FrameHead::parse(&bytes, end), Ok(Some((head, length))));
            for part in 0..length {
                prop_assert_eq!(FrameHead::parse(&bytes[..part], end), Ok(None));
            }
            let other = if end == End::Server { End::Client } else { End::Server };
            prop_assert_eq!(FrameHead::parse(&bytes, other), Err(Broken::Protocol));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            for end in [End::Client, End::Server] {
                if let Ok(Some((head, length))) = FrameHead::parse(&bytes, end) {
                    let mut again = [0; LONGEST_HEAD];
                    prop_assert_eq!(head.write(&mut again), length);
                    prop_assert_eq!(&again[..length], &bytes[..length]);
                }
            }
        }
    }

    #[test]
    fn what_the_standard_forbids_is_refused() {
        let wrong: &[(&str, &[u8])] = &[
            ("reserved bit 1", &[0xc2, 0x00]),
            ("reserved bit 2", &[0xa2, 0x00]),
            ("reserved bit 3", &[0x92, 0x00]),
            ("data opcodes 3 to 7", &[0x83, 0x00]),
            ("control opcodes 11 to 15", &[0x8b, 0x00]),
            ("a fragmented ping", &[0x09, 0x00]),
            ("a ping of 126 bytes", &[0x89, 126, 0, 126]),
            ("125 in two bytes", &[0x82, 126, 0, 125]),
            ("65,535 in eight bytes", &[0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff]),
            ("a length of 64 bits", &[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            ("a masked frame for a client", &[0x82, 0x80, 0, 0, 0, 0]),
        ];
        for (what, bytes) in wrong {
            assert_eq!(FrameHead::parse(bytes, End::Client), Err(Broken::Protocol), "{what}");
        }
        assert_eq!(
            FrameHead::parse(&[0x82, 0x00], End::Server),
            Err(Broken::Protocol),
            "unmasked for a server"
        );
    }
}
