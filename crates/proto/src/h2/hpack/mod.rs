//! Header compression (RFC 7541): the decoder, and blocks that are encoded once.
//!
//! | module | contents |
//! |---|---|
//! | `table` | the static and the dynamic table |
//! | `huffman` | the code of strings |
//! | `encode` | the blocks of a message that is sent again and again |

mod encode;
mod huffman;
mod table;

pub use encode::{Blocks, Encoding};
pub(super) use table::TABLE_SIZE;

use table::{ENTRY, Table};

/// The block is not one, or its fields are longer than they may be. The connection is lost with it: the
/// tables of both ends differ from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadBlock {
    Malformed,
    TooLong,
}

/// The state of one direction.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The field under way, where it does not lie in a table.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { table: Table::new(), name: Vec::new(), value: Vec::new() }
    }
}

impl Decoder {
    /// Passes name and value of each field of a block to `take`. They may have `most` bytes, with 32 more for
    /// each field (RFC 9113 section 6.5.2).
    ///
    /// # Errors
    /// See [`BadBlock`].
    #[inline]
    pub fn decode(
        &mut self,
        mut block: &[u8],
        most: usize,
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), BadBlock> {
        let (mut left, mut begun) = (most, false);
        let mut pass = |name: &[u8], value: &[u8]| {
            let size = name.len() + value.len() + ENTRY;
            left = left.checked_sub(size).ok_or(BadBlock::TooLong)?;
            take(name, value);
            Ok(())
        };
        while let Some(first) = block.first().copied() {
            if first & 0x80 != 0 {
                let index = integer(&mut block, 7)?;
                let (name, value) = self.table.get(index).ok_or(BadBlock::Malformed)?;
                pass(name, value)?;
            } else if first & 0xe0 == 0x20 {
                // Only in front of the first field (section 4.2).
                let size = integer(&mut block, 5)?;
                if begun || !self.table.resize(size) {
                    return Err(BadBlock::Malformed);
                }
                continue;
            } else {
                let is_kept = first & 0x40 != 0;
                let index = integer(&mut block, if is_kept { 6 } else { 4 })?;
                self.name.clear();
                if index == 0 {
                    string(&mut block, &mut self.name, most)?;
                } else {
                    // Copied: the entry may be evicted by this field (section 4.4).
                    self.name.extend_from_slice(self.table.get(index).ok_or(BadBlock::Malformed)?.0);
                }
                self.value.clear();
                string(&mut block, &mut self.value, most)?;
                pass(&self.name, &self.value)?;
                if is_kept {
                    self.table.insert(&self.name, &self.value);
                }
            }
            begun = true;
        }
        Ok(())
    }
}

/// An integer with a prefix of this many bits (section 5.1), below 2^28: nothing here is longer.
#[inline]
fn integer(block: &mut &[u8], prefix: u32) -> Result<usize, BadBlock> {
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

/// Appends a string (section 5.2) to `output`, of `most` bytes at most.
#[inline]
fn string(block: &mut &[u8], output: &mut Vec<u8>, most: usize) -> Result<(), BadBlock> {
    let is_coded = block.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(block, 7)?;
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

#[cfg(test)]
mod tests;
