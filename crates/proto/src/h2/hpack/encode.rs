//! The block of a message that is sent again and again, encoded once.
//!
//! The first block of a connection puts into the peer's dynamic table what the static one lacks; the later
//! ones have a byte or two for each field. A peer with a smaller table than the usual one gets blocks without
//! it.

use super::table::{TABLE_SIZE, find};
use crate::fields::{ENTRY, Writing, put_integer};

/// A message's fields as blocks.
#[derive(Debug, Clone)]
pub struct Blocks {
    first: Vec<u8>,
    later: Vec<u8>,
    /// Without a dynamic table; the first one of a connection begins with its size, which is 0.
    plain: Vec<u8>,
    /// The size of the fields in the dynamic table.
    size: usize,
}

/// The part of this end's message that the peer's table has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Nothing yet.
    #[default]
    Fresh,
    Kept,
    /// Nothing, and it is empty.
    Plain,
}

impl Blocks {
    /// The blocks of these fields. Names are in lower case.
    pub fn new(fields: &[(&str, &str)]) -> Self {
        let mut blocks = Self { first: Vec::new(), later: Vec::new(), plain: vec![0x20], size: 0 };
        let is_new = |field: &&(&str, &str)| find(field.0, field.1).0.is_none();
        let mut age = fields.iter().filter(is_new).count();
        for (name, value) in fields {
            if let (Some(index), _) = find(name, value) {
                for block in [&mut blocks.first, &mut blocks.later, &mut blocks.plain] {
                    put_integer(block, 0x80, 7, index);
                }
                continue;
            }
            put_literal(&mut blocks.first, 0x40, 6, name, value);
            put_literal(&mut blocks.plain, 0, 4, name, value);
            age -= 1;
            put_integer(&mut blocks.later, 0x80, 7, 62 + age);
            blocks.size += name.len() + value.len() + ENTRY;
        }
        blocks
    }

    /// The next block for a peer whose table may have `table` bytes.
    #[inline]
    pub fn next(&self, encoding: &mut Encoding, table: usize) -> &[u8] {
        let fits = table >= TABLE_SIZE && self.size <= TABLE_SIZE;
        let (next, block) = match *encoding {
            Encoding::Kept if fits => (Encoding::Kept, &self.later[..]),
            Encoding::Fresh if fits => (Encoding::Kept, &self.first[..]),
            Encoding::Plain => (Encoding::Plain, &self.plain[1..]),
            Encoding::Fresh | Encoding::Kept => (Encoding::Plain, &self.plain[..]),
        };
        *encoding = next;
        block
    }

    /// The longest of them.
    pub fn longest(&self) -> usize {
        self.first.len().max(self.plain.len())
    }
}

/// A field that a peer's table does not keep.
pub(in crate::h2) const WRITING: Writing = Writing {
    field: |block, name, value| match find(name, value) {
        (Some(index), _) => put_integer(block, 0x80, 7, index),
        _ => put_literal(block, 0, 4, name, value),
    },
    name: |block, name| put_name(block, 0, 4, name, find(name, "").1),
};

fn put_literal(block: &mut Vec<u8>, pattern: u8, prefix: u32, name: &str, value: &str) {
    put_name(block, pattern, prefix, name, find(name, value).1);
    put_text(block, value);
}

/// The start of a literal; `index`: where the static table has the name.
fn put_name(block: &mut Vec<u8>, pattern: u8, prefix: u32, name: &str, index: Option<usize>) {
    put_integer(block, pattern, prefix, index.unwrap_or(0));
    if index.is_none() {
        put_text(block, name);
    }
}

fn put_text(block: &mut Vec<u8>, text: &str) {
    put_integer(block, 0, 7, text.len());
    block.extend_from_slice(text.as_bytes());
}
