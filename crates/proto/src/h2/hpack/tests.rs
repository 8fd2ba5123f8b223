use super::*;

const MOST: usize = 64 << 10;

fn fields(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, BadBlock> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    decoder.decode(block, MOST, |name, value| fields.push((text(name), text(value))))?;
    Ok(fields)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// Blocks of one connection, each with its fields and the size of the table behind it.
fn example(blocks: &[(&str, &str, usize)], table: usize) {
    let mut decoder = Decoder::default();
    decoder.table.resize(table);
    for (block, expected, size) in blocks {
        let found = fields(&mut decoder, &bytes(block)).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(found, expected.split('|').collect::<Vec<_>>());
        assert_eq!(decoder.table.size(), *size, "{block}");
    }
}

#[test]
fn single_fields_of_appendix_c_2_are_decoded() {
    example(
        &[
            (
                "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
                "custom-key: custom-header",
                55,
            ),
            ("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", 55),
            ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", 55),
            ("82", ":method: GET", 55),
        ],
        4_096,
    );
}

const REQUESTS: [&str; 3] = [
    ":method: GET|:scheme: http|:path: /|:authority: www.example.com",
    ":method: GET|:scheme: http|:path: /|:authority: www.example.com|cache-control: no-cache",
    ":method: GET|:scheme: https|:path: /index.html|:authority: www.example.com|custom-key: custom-value",
];

#[test]
fn requests_of_appendix_c_3_and_c_4_are_decoded() {
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, coded] {
        let rows = [(0, 57), (1, 110), (2, 164)].map(|(at, size)| (blocks[at], REQUESTS[at], size));
        example(&rows, 4_096);
    }
}

const RESPONSES: [&str; 3] = [
    ":status: 302|cache-control: private|date: Mon, 21 Oct 2013 20:13:21 GMT|\
     location: https://www.example.com",
    ":status: 307|cache-control: private|date: Mon, 21 Oct 2013 20:13:21 GMT|\
     location: https://www.example.com",
    ":status: 200|cache-control: private|date: Mon, 21 Oct 2013 20:13:22 GMT|\
     location: https://www.example.com|content-encoding: gzip|\
     set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
];

#[test]
fn responses_of_appendix_c_5_and_c_6_are_decoded_with_evictions() {
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 \
         3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 \
         7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 \
         6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    let coded = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad \
         1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 \
         e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    for blocks in [plain, coded] {
        let rows = [(0, 222), (1, 222), (2, 215)].map(|(at, size)| (blocks[at], RESPONSES[at], size));
        example(&rows, 256);
    }
}

#[test]
fn integers_of_appendix_c_1_are_decoded() {
    for (hex, prefix, value) in [("0a", 5, 10), ("1f 9a 0a", 5, 1_337), ("2a", 8, 42)] {
        assert_eq!(integer(&mut &bytes(hex)[..], prefix), Ok(value));
    }
    assert_eq!(integer(&mut &bytes("1f ff ff ff ff ff 0f")[..], 5), Err(BadBlock::Malformed));
}

#[test]
fn blocks_that_break_the_rules_are_refused() {
    for hex in [
        "80",                // index 0
        "be",                // an entry that is not there
        "7e 00",             // a name that is not there
        "44 05 61",          // a string that is cut
        "40",                // nothing behind a pattern
        "82 20",             // a size behind a field
        "3f e2 1f",          // a table of 4,097 bytes
        "ff 80 80 80 80 01", // an integer that is too long
    ] {
        assert_eq!(fields(&mut Decoder::default(), &bytes(hex)), Err(BadBlock::Malformed), "{hex}");
    }
    let mut decoder = Decoder::default();
    assert_eq!(decoder.decode(&[0x82; 10], 300, |_, _| {}), Err(BadBlock::TooLong));
    // A size is good in front of the first field, also twice.
    assert_eq!(fields(&mut decoder, &bytes("20 3f e1 1f 82")).unwrap().len(), 1);
}

#[test]
fn blocks_that_are_encoded_once_have_the_same_fields_each_time() {
    let long = "v".repeat(200);
    let fields_in = [(":method", "GET"), (":path", "/a"), (":authority", "h:80"), ("x-long", &long[..])];
    let blocks = Blocks::new(&fields_in);
    let expected: Vec<_> =
        fields_in.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    for tables in [[4_096; 4], [0; 4], [65_536, 4_096, 100, 4_096]] {
        let (mut decoder, mut encoding) = (Decoder::default(), Encoding::default());
        for table in tables {
            let block = blocks.next(&mut encoding, table);
            assert_eq!(fields(&mut decoder, block).unwrap(), expected);
            assert!(block.len() <= blocks.longest());
        }
        assert_eq!(blocks.next(&mut encoding, 4_096).len() == 4, tables == [4_096; 4]);
    }
}
