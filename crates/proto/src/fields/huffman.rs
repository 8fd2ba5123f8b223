//! The Huffman code of header strings (RFC 7541 section 5.2 and appendix B).

/// Bits of the code of each octet, and of EOS. The code is canonical, so lengths are enough: codes of one
/// length follow one another by octet, and longer codes follow shorter ones.
#[rustfmt::skip]
const LENGTHS: [u8; EOS + 1] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6,
    6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5,
    6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24,
    23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26,
    26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21,
    26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26,
    26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const EOS: usize = 256;
const SHORTEST: usize = 5;
const LONGEST: usize = 30;

/// The tables that are derived from [`LENGTHS`].
struct Tables {
    /// Octet and length by the next 8 bits; length 0: the code is longer.
    short: [(u8, u8); 256],
    /// The first code of each length, the number of codes, and where its octets begin in `octets`.
    first: [u32; LONGEST + 1],
    count: [u32; LONGEST + 1],
    place: [u16; LONGEST + 1],
    octets: [u16; EOS + 1],
}

static TABLES: Tables = build();

const fn build() -> Tables {
    let mut tables = Tables {
        short: [(0, 0); 256],
        first: [0; LONGEST + 1],
        count: [0; LONGEST + 1],
        place: [0; LONGEST + 1],
        octets: [0; EOS + 1],
    };
    let (mut code, mut place, mut length) = (0_u32, 0, 1);
    while length <= LONGEST {
        (tables.first[length], tables.place[length]) = (code, place as u16);
        let mut octet = 0;
        while octet <= EOS {
            if LENGTHS[octet] as usize == length {
                if length <= 8 {
                    let (from, many) = ((code << (8 - length)) as usize, 1 << (8 - length));
                    let mut at = from;
                    while at < from + many {
                        tables.short[at] = (octet as u8, length as u8);
                        at += 1;
                    }
                }
                tables.octets[place] = octet as u16;
                tables.count[length] += 1;
                place += 1;
                code += 1;
            }
            octet += 1;
        }
        code <<= 1;
        length += 1;
    }
    tables
}

/// The string has no code, is padded wrongly, or is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadString;

/// Appends the decoded string to `output`, which may have `most` octets.
///
/// # Errors
/// See [`BadString`].
#[inline]
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>, most: usize) -> Result<(), BadString> {
    let from = output.len();
    let room = (input.len() * 8 / SHORTEST).min(most.saturating_sub(from));
    output.resize(from + room, 0);
    let decoded = decode_into(input, &mut output[from..]);
    output.truncate(from + decoded.unwrap_or(0));
    decoded.map(|_| ())
}

/// The number of decoded octets.
#[inline]
fn decode_into(input: &[u8], output: &mut [u8]) -> Result<usize, BadString> {
    // The highest `have` bits of `bits` are not decoded yet; zeros follow them.
    let (mut bits, mut have, mut at) = (0_u64, 0_usize, 0);
    let mut chunks = input.chunks_exact(4);
    for chunk in &mut chunks {
        let next = chunk.iter().fold(0_u32, |next, byte| (next << 8) | u32::from(*byte));
        (bits, have) = (bits | (u64::from(next) << (32 - have)), have + 32);
        while have >= 8 {
            let (octet, length) = match TABLES.short[(bits >> 56) as usize] {
                // The code may go on in the next chunk.
                (_, 0) if have < LONGEST => break,
                (_, 0) => long(bits, have)?,
                (octet, length) => (octet, usize::from(length)),
            };
            *output.get_mut(at).ok_or(BadString)? = octet;
            (bits, have, at) = (bits << length, have - length, at + 1);
        }
    }
    for byte in chunks.remainder() {
        (bits, have) = (bits | (u64::from(*byte) << (56 - have)), have + 8);
    }
    // Less than an octet of the highest bits of EOS is behind the last code.
    while have >= 8 || (bits.leading_ones() as usize) < have {
        let (octet, length) = match TABLES.short[(bits >> 56) as usize] {
            (_, 0) => long(bits, have)?,
            (octet, length) => (octet, usize::from(length)),
        };
        *output.get_mut(at).ok_or(BadString)? = octet;
        (bits, have, at) = (bits << length, have.checked_sub(length).ok_or(BadString)?, at + 1);
    }
    Ok(at)
}

/// The octet of a code of more than 8 bits, and its length.
fn long(bits: u64, have: usize) -> Result<(u8, usize), BadString> {
    for length in 9..=LONGEST.min(have) {
        let code = (bits >> (64 - length)) as u32;
        let number = code.wrapping_sub(TABLES.first[length]);
        if number < TABLES.count[length] {
            let octet = TABLES.octets[usize::from(TABLES.place[length]) + number as usize];
            return u8::try_from(octet).map(|octet| (octet, length)).map_err(|_| BadString);
        }
    }
    Err(BadString)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Result<String, BadString> {
        let mut output = Vec::new();
        decode(input, &mut output, 100).map(|()| String::from_utf8(output).unwrap())
    }

    /// By the tables alone: bit after bit.
    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut bits = String::new();
        for octet in text {
            let length = usize::from(LENGTHS[usize::from(*octet)]);
            let place = usize::from(TABLES.place[length]);
            let octets = &TABLES.octets[place..place + TABLES.count[length] as usize];
            let number = octets.iter().position(|known| *known == u16::from(*octet)).unwrap();
            bits += &format!("{:0length$b}", TABLES.first[length] + number as u32);
        }
        bits += &"1".repeat((8 - bits.len() % 8) % 8);
        let byte = |at: usize| u8::from_str_radix(&bits[at..at + 8], 2).unwrap();
        (0..bits.len()).step_by(8).map(byte).collect()
    }

    #[test]
    fn the_examples_of_appendix_c_are_decoded() {
        for (input, text) in [
            (&b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..], "www.example.com"),
            (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
            (b"\x64\x02", "302"),
            (b"\xae\xc3\x77\x1a\x4b", "private"),
            (b"", ""),
        ] {
            assert_eq!(decoded(input).unwrap(), text);
            assert_eq!(encoded(text.as_bytes()), input);
        }
    }

    #[test]
    fn every_octet_is_decoded() {
        for octet in 0..=255 {
            for text in [vec![octet], vec![b'a', octet, octet, b'0']] {
                let mut output = Vec::new();
                decode(&encoded(&text), &mut output, 4).unwrap();
                assert_eq!(output, text);
            }
        }
    }

    #[test]
    fn codes_of_every_length_are_decoded_at_every_place() {
        for step in 1..=64 {
            let text: Vec<u8> = (0..=1000).map(|at| (at * step / 3 % 256) as u8).collect();
            let mut output = Vec::new();
            decode(&encoded(&text), &mut output, text.len()).unwrap();
            assert_eq!(output, text);
            assert_eq!(decode(&encoded(&text), &mut Vec::new(), text.len() - 1), Err(BadString));
        }
    }

    #[test]
    fn eos_and_wrong_padding_are_refused() {
        // "a" with zeros as padding, "302" with eight bits of padding, codes that are cut, and EOS itself.
        for input in [&b"\x18"[..], b"\x64\x02\xff", b"\xff", b"\xff\xfe", b"\xff\xff\xff\xff"] {
            assert_eq!(decoded(input), Err(BadString), "{input:x?}");
        }
        let mut output = Vec::new();
        assert_eq!(decode(b"\x64\x02", &mut output, 2), Err(BadString), "longer than it may be");
    }
}
