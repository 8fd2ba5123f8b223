//! The chunked transfer coding (RFC 9112 section 7.1), parsed from pieces of any size without a buffer.

use super::response::{Malformed, ParserState};

/// Longer chunk extensions or trailers are malformed, in bytes.
const LONGEST_LINE: u32 = 64 << 10;

/// The state of the parser in a chunked body.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chunked {
    at: At,
    /// In [`At::Size`] the value so far, in [`At::Data`] the bytes left.
    size: u64,
    /// Bytes of the line, or of the trailers, so far.
    line: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum At {
    /// In the hexadecimal size.
    #[default]
    Size,
    /// In an extension behind the size, which is ignored.
    Extension,
    /// Behind the carriage return of the size line.
    SizeEnd,
    Data,
    /// Before and after the carriage return behind the data.
    DataEnd,
    DataEndFeed,
    /// At the start of a line behind the last chunk; inside such a line; behind the carriage return of an
    /// empty one.
    TrailerStart,
    Trailer,
    TrailerEnd,
}

impl Chunked {
    /// Takes the next bytes, and passes those of the body to `sink`.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<ParserState, Malformed> {
        while let Some(&byte) = bytes.first() {
            if self.at == At::Data {
                let (data, rest) = bytes.split_at(self.size.min(bytes.len() as u64) as usize);
                sink(data);
                self.size -= data.len() as u64;
                bytes = rest;
                if self.size == 0 {
                    self.at = At::DataEnd;
                }
                continue;
            }
            bytes = &bytes[1..];
            if self.at == At::TrailerEnd {
                return if byte == b'\n' {
                    Ok(ParserState::Complete { rest: bytes.len() })
                } else {
                    Err(Malformed::Chunk)
                };
            }
            self.framing(byte)?;
        }
        Ok(ParserState::More)
    }

    /// Takes one byte between two pieces of data.
    fn framing(&mut self, byte: u8) -> Result<(), Malformed> {
        self.line += 1;
        if self.line > LONGEST_LINE {
            return Err(Malformed::Chunk);
        }
        self.at = match (self.at, byte) {
            (At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).expect("matched above");
                self.size = self.size.checked_mul(16).ok_or(Malformed::Chunk)? + u64::from(digit);
                At::Size
            }
            // The first byte must be a digit.
            (At::Size, b';' | b' ' | b'\t') if self.line > 1 => At::Extension,
            (At::Size, b'\r') if self.line > 1 => At::SizeEnd,
            (At::Extension, b'\r') => At::SizeEnd,
            (At::Extension, b'\n') => return Err(Malformed::Chunk),
            (At::Extension, _) => At::Extension,
            (At::SizeEnd, b'\n') => {
                self.line = 0;
                if self.size == 0 { At::TrailerStart } else { At::Data }
            }
            (At::DataEnd, b'\r') => At::DataEndFeed,
            (At::DataEndFeed, b'\n') => {
                self.line = 0;
                At::Size
            }
            (At::TrailerStart, b'\r') => At::TrailerEnd,
            (At::Trailer, b'\n') => At::TrailerStart,
            (At::TrailerStart | At::Trailer, _) if byte != b'\n' => At::Trailer,
            _ => return Err(Malformed::Chunk),
        };
        Ok(())
    }
}
