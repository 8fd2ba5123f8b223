//! UTF-8 that comes in pieces: a character may be cut anywhere, and what cannot become one is found at once.

/// The state of a text so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Utf8 {
    /// The start of a character whose end has not come.
    cut: [u8; 4],
    length: usize,
}

/// Not UTF-8, whatever follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUtf8;

impl Utf8 {
    /// Takes the next piece.
    ///
    /// # Errors
    /// The text is not UTF-8.
    pub fn feed(&mut self, mut piece: &[u8]) -> Result<(), NotUtf8> {
        while self.length > 0 {
            let Some((first, rest)) = piece.split_first() else { return Ok(()) };
            (self.cut[self.length], piece) = (*first, rest);
            self.length += 1;
            match std::str::from_utf8(&self.cut[..self.length]) {
                Ok(_) => self.length = 0,
                // It can still become a character: four bytes at most, and the fifth is never asked for.
                Err(e) if e.error_len().is_none() => {}
                Err(_) => return Err(NotUtf8),
            }
        }
        match std::str::from_utf8(piece) {
            Ok(_) => Ok(()),
            Err(e) if e.error_len().is_none() => {
                let cut = &piece[e.valid_up_to()..];
                self.cut[..cut.len()].copy_from_slice(cut);
                self.length = cut.len();
                Ok(())
            }
            Err(_) => Err(NotUtf8),
        }
    }

    /// The text ends here; the next one can begin.
    ///
    /// # Errors
    /// The text ends within a character.
    pub fn end(&mut self) -> Result<(), NotUtf8> {
        if std::mem::take(&mut self.length) == 0 { Ok(()) } else { Err(NotUtf8) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_judged_as_the_whole(bytes in prop_oneof![
            any::<String>().prop_map(String::into_bytes),
            any::<Vec<u8>>(),
            prop::collection::vec(
                prop::sample::select(vec![0xf4_u8, 0x90, 0x8f, 0xed, 0xa0, 0x80, 0xe2, b'a']),
                0..9,
            ),
        ], cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let mut text = Utf8::default();
            let mut from = 0;
            let mut good = true;
            for to in cuts.into_iter().chain([bytes.len()]) {
                good = good && text.feed(&bytes[from..to]).is_ok();
                from = to;
            }
            good = good && text.end().is_ok();
            prop_assert_eq!(good, std::str::from_utf8(&bytes).is_ok());
        }
    }

    #[test]
    fn what_cannot_become_a_character_is_found_before_its_end() {
        let mut text = Utf8::default();
        text.feed(&[b'a', 0xf4]).unwrap();
        // U+110000 and above do not exist.
        assert_eq!(text.feed(&[0x90]), Err(NotUtf8));
    }
}
