//! Fields of messages, as HTTP/2 and HTTP/3 have them: their coding, and what each end needs of them.

mod coding;
mod huffman;
mod list;
mod request;
mod response;
mod vary;

pub use coding::BadBlock;
pub(crate) use coding::{integer, put_integer, string};
pub(crate) use list::RequestList;
pub(crate) use request::{Method, RequestFields};
pub(crate) use response::ResponseFields;
pub use vary::Rendered;
pub(crate) use vary::{VaryingMessage, Writing};

/// Bytes of the fields of a message, with 32 more for each; nginx and Apache refuse requests above 32 KiB.
pub(crate) const MOST_FIELDS: usize = 64 << 10;
/// The size of a field beyond its name and value (RFC 7541 section 4.1, RFC 9114 section 4.2.2).
pub(crate) const ENTRY: usize = 32;

/// True for a value that a field must not have (RFC 9113 section 8.2.1, RFC 9114 section 4.2): an end that
/// speaks HTTP/1.1 behind this one would take it for the end of the field.
#[inline]
pub(crate) fn is_split(value: &[u8]) -> bool {
    let is_end = |byte: &u8| matches!(byte, 0 | b'\r' | b'\n');
    let mut words = value.chunks_exact(8);
    // Eight bytes at once: the highest bit of each that is below 14 and has none itself.
    let has_control = words.by_ref().fold(0, |found, word| {
        let word = word.iter().fold(0_u64, |word, byte| (word << 8) | u64::from(*byte));
        found | (word.wrapping_sub(0x0e0e_0e0e_0e0e_0e0e) & !word & 0x8080_8080_8080_8080)
    });
    words.remainder().iter().any(is_end) || (has_control != 0 && value.iter().any(is_end))
}

/// The number of a text of digits alone; `None`: another text, or above 2^64.
#[inline]
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    let appended = |number: u64, byte: &u8| {
        let digit = byte.wrapping_sub(b'0');
        number.checked_mul(10)?.checked_add(digit.into()).filter(|_| digit <= 9)
    };
    if text.is_empty() { None } else { text.iter().try_fold(0, appended) }
}

/// Where a field is in a static table, and where its name is.
pub(crate) fn find(table: &[(&str, &str)], name: &str, value: &str) -> (Option<usize>, Option<usize>) {
    let field = table.iter().position(|entry| *entry == (name, value));
    (field, table.iter().position(|entry| entry.0 == name))
}

/// Fields of a message, as far as an end needs them.
pub(crate) trait Fields: Default {
    fn take(&mut self, name: &[u8], value: &[u8]);
}
