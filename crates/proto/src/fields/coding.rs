//! Integers and strings of HPACK (RFC 7541 section 5), which QPACK has as well (RFC 9204 section 4.1).

use super::huffman;

/// The block is not one, or its fields are longer than they may be. The connection is lost with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadBlock {
    Malformed,
    TooLong,
}

/// An integer with a prefix of this many bits (RFC 7541 section 5.1), below 2^28: nothing here is longer.
#[inline]
pub(crate) fn integer(block: &mut &[u8], prefix: u32) -> Result<usize, BadBlock> {
    let (first, rest) = block.split_first().ok_or(BadBlock::Malformed)?;
    *block = rest;
    let most = (1 << prefix) - 1;
    let mut value = usize::from(*first) & most;
    if value < most {
        return Ok(value);
    }
    for shift in [0, 7, 14, 21] {
        let (byte, rest) = block.split_first().ok_or(BadBlock::Malformed)?;
        *block = rest;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(BadBlock::Malformed)
}

/// Appends a string (RFC 7541 section 5.2) to `output`, of `most` bytes at most. The bit before the prefix of
/// its length is set where it has the Huffman code.
#[inline]
pub(crate) fn string(
    block: &mut &[u8],
    prefix: u32,
    output: &mut Vec<u8>,
    most: usize,
) -> Result<(), BadBlock> {
    let is_coded = block.first().is_some_and(|first| first & (1 << prefix) != 0);
    let length = integer(block, prefix)?;
    let (text, rest) = block.split_at_checked(length).ok_or(BadBlock::Malformed)?;
    *block = rest;
    if is_coded {
        return huffman::decode(text, output, most).map_err(|_| BadBlock::Malformed);
    }
    if length > most {
        return Err(BadBlock::TooLong);
    }
    output.extend_from_slice(text);
    Ok(())
}

/// The reverse of [`integer`]; `pattern` are the bits before the prefix.
pub(crate) fn put_integer(block: &mut Vec<u8>, pattern: u8, prefix: u32, value: usize) {
    let most = (1 << prefix) - 1;
    if value < most {
        return block.push(pattern | value as u8);
    }
    block.push(pattern | most as u8);
    let mut rest = value - most;
    while rest > 0x7f {
        block.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    block.push(rest as u8);
}
