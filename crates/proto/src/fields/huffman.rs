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
    let mut input = input.iter();
    // The lowest `have` bits of `bits` are not decoded yet.
    let (mut bits, mut have) = (0_u64, 0_usize);
    loop {
        while have <= 32 {
            let Some(byte) = input.next() else { break };
            (bits, have) = ((bits << 8) | u64::from(*byte), have + 8);
        }
        if have < 8 && bits.trailing_ones() as usize >= have {
            // Less than an octet of the highest bits of EOS.
            return Ok(());
        }
        let next = if have >= 8 { bits >> (have - 8) } else { (bits << (8 - have)) | (0xff >> have) } as u8;
        let (octet, length) = TABLES.short[usize::from(next)];
        let (octet, length) = match usize::from(length) {
            0 => long(bits, have)?,
            length if length > have => return Err(BadString),
            length => (octet, length),
        };
        if output.len() >= most {
            return Err(BadString);
        }
        output.push(octet);
        have -= length;
    }
}

/// The octet of a code of more than 8 bits, and its length.
fn long(bits: u64, have: usize) -> Result<(u8, usize), BadString> {
    for length in 9..=LONGEST.min(have) {
        let code = (bits >> (have - length)) as u32 & ((1 << length) - 1);
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
    fn eos_and_wrong_padding_are_refused() {
        // "a" with zeros as padding, "302" with eight bits of padding, codes that are cut, and EOS itself.
        for input in [&b"\x18"[..], b"\x64\x02\xff", b"\xff", b"\xff\xfe", b"\xff\xff\xff\xff"] {
            assert_eq!(decoded(input), Err(BadString), "{input:x?}");
        }
        let mut output = Vec::new();
        assert_eq!(decode(b"\x64\x02", &mut output, 2), Err(BadString), "longer than it may be");
    }
}
