//! Header compression (RFC 7541): the decoder, and blocks that are encoded once.
//!
//! | module | contents |
//! |---|---|
//! | `table` | the static and the dynamic table |
//! | `encode` | the blocks of a message that is sent again and again |

mod encode;
mod table;

pub(super) use encode::WRITING;
pub use encode::{Blocks, Encoding};
pub(super) use table::TABLE_SIZE;

use crate::fields::{BadBlock, ENTRY, integer, string};
use table::Table;

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
    /// Bytes of memory that are kept.
    #[inline]
    pub fn kept(&self) -> usize {
        self.table.kept() + self.name.capacity() + self.value.capacity()
    }

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
                    string(&mut block, 7, &mut self.name, most)?;
                } else {
                    // Copied: the entry may be evicted by this field (section 4.4).
                    self.name.extend_from_slice(self.table.get(index).ok_or(BadBlock::Malformed)?.0);
                }
                self.value.clear();
                string(&mut block, 7, &mut self.value, most)?;
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

#[cfg(test)]
mod tests;
