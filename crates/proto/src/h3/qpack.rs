//! Header compression without a dynamic table (RFC 9204): this end announces none, so a peer may not refer to
//! one, and refers to none itself.
//!
//! A section of fields begins with two numbers about the dynamic table, which are zero here (section 4.5.1).

mod table;

use crate::fields::{BadBlock, ENTRY, Writing, find, integer, put_integer, string};
use table::STATIC;

/// The state of one direction: the field under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Decoder {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// Bytes of memory that are kept.
    #[inline]
    pub(super) fn kept(&self) -> usize {
        self.name.capacity() + self.value.capacity()
    }

    /// Passes name and value of each field of a section to `take`. They may have `most` bytes, with 32 more
    /// for each field (RFC 9114 section 4.2.2).
    ///
    /// # Errors
    /// See [`BadBlock`]; a reference to the dynamic table is malformed.
    #[inline]
    pub(super) fn decode(
        &mut self,
        mut section: &[u8],
        most: usize,
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), BadBlock> {
        let mut left = most;
        let mut pass = |name: &[u8], value: &[u8]| {
            let size = name.len() + value.len() + ENTRY;
            left = left.checked_sub(size).ok_or(BadBlock::TooLong)?;
            take(name, value);
            Ok(())
        };
        let required = integer(&mut section, 8)?;
        // The base is a number relative to it: without entries it means nothing.
        integer(&mut section, 7)?;
        if required != 0 {
            return Err(BadBlock::Malformed);
        }
        while let Some(first) = section.first().copied() {
            let entry = |index: usize| STATIC.get(index).ok_or(BadBlock::Malformed);
            if first & 0xc0 == 0xc0 {
                let (name, value) = entry(integer(&mut section, 6)?)?;
                pass(name.as_bytes(), value.as_bytes())?;
                continue;
            }
            self.name.clear();
            let name = if first & 0xd0 == 0x50 {
                entry(integer(&mut section, 4)?)?.0.as_bytes()
            } else if first & 0xe0 == 0x20 {
                string(&mut section, 3, &mut self.name, most)?;
                &self.name
            } else {
                return Err(BadBlock::Malformed);
            };
            self.value.clear();
            string(&mut section, 7, &mut self.value, most)?;
            pass(name, &self.value)?;
        }
        Ok(())
    }
}

/// The section of these fields. Names are in lower case.
pub(super) fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = START.to_vec();
    fields.iter().for_each(|(name, value)| (WRITING.field)(&mut section, name, value));
    section
}

/// The numbers about the dynamic table, before the fields.
pub(super) const START: &[u8] = &[0, 0];

pub(super) const WRITING: Writing = Writing {
    field: |section, name, value| match find(&STATIC, name, value) {
        (Some(index), _) => put_integer(section, 0xc0, 6, index),
        (None, named) => {
            put_name(section, name, named);
            put_integer(section, 0, 7, value.len());
            section.extend_from_slice(value.as_bytes());
        }
    },
    name: |section, name| put_name(section, name, find(&STATIC, name, "").1),
};

/// The start of a literal; `index`: where the static table has the name.
fn put_name(section: &mut Vec<u8>, name: &str, index: Option<usize>) {
    match index {
        Some(index) => put_integer(section, 0x50, 4, index),
        None => {
            put_integer(section, 0x20, 3, name.len());
            section.extend_from_slice(name.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(section: &[u8]) -> Result<Vec<String>, BadBlock> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Decoder::default()
            .decode(section, 1_000, |name, value| fields.push(text(name) + "=" + &text(value)))?;
        Ok(fields)
    }

    #[test]
    fn the_literal_of_appendix_b_1_is_decoded() {
        let section = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(fields(section).unwrap(), [":path=/index.html"]);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let long = "v".repeat(300);
        let typed = ("content-type", "text/plain");
        let all = [(":method", "GET"), (":path", "/a"), ("x-long-name", &long[..]), typed];
        let expected: Vec<_> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(fields(&section(&all)).unwrap(), expected);
        assert_eq!(section(&[(":status", "200")]), [0, 0, 0xc0 | 25]);
    }

    #[test]
    fn strings_with_the_huffman_code_are_decoded() {
        let coded = b"\x00\x00\x50\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        assert_eq!(fields(coded).unwrap(), [":authority=www.example.com"]);
        let name = b"\x00\x00\x2e\xa8\xeb\x10\x64\x9c\xbf\x00";
        assert_eq!(fields(name).unwrap(), ["no-cache="]);
    }

    #[test]
    fn references_to_a_dynamic_table_and_cut_sections_are_refused() {
        for section in [
            &b""[..],
            b"\x00",
            b"\x01\x00\xd1",         // it needs an entry
            b"\x00\x00\x80",         // a field of the dynamic table
            b"\x00\x00\x10",         // a field behind the base
            b"\x00\x00\x40\x00",     // a name of the dynamic table
            b"\x00\x00\x00\x00",     // a name behind the base
            b"\x00\x00\xff\x24",     // beyond the static table
            b"\x00\x00\x51\x0b/ind", // cut
        ] {
            assert_eq!(fields(section), Err(BadBlock::Malformed), "{section:x?}");
        }
        assert_eq!(fields(&[&[0, 0][..], &[0xd9; 100]].concat()), Err(BadBlock::TooLong));
    }
}
