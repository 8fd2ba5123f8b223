//! Requests that vary: `{seq}` is the number of the request, `{rand:1:1000}` a random one.

use linerate_contract::{Refusal, Request};

/// A text with places for numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Sequence,
    Random {
        least: u64,
        most: u64,
    },
    /// The length of the body.
    Length,
}

/// A request with places for numbers, in its target, its headers or its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Varying {
    head: Template,
    body: Template,
}

/// The numbers of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    sequence: u64,
    /// The state of a generator of random numbers.
    state: u64,
}

impl Numbers {
    /// The values of a seed and the request's own number.
    pub(crate) fn new(sequence: u64, seed: u64) -> Self {
        Self { sequence, state: seed.wrapping_add(sequence.wrapping_mul(0xd134_2543_de82_ef95)) }
    }

    /// SplitMix64 (Steele, Lea, Flood 2014), whose first numbers do not depend on each other either.
    fn random(&mut self, least: u64, most: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = u128::from(mixed ^ (mixed >> 31));
        // A share of the range.
        least + ((mixed * (u128::from(most - least) + 1)) >> 64) as u64
    }
}

/// Whether a request with this path has places for numbers.
pub fn varies(path: &str, request: &Request) -> bool {
    let body = String::from_utf8_lossy(&request.body);
    let mut texts = request.headers.iter().map(String::as_str).chain([path, &*body]);
    texts.any(|text| text.contains("{seq}") || text.contains("{rand:"))
}

impl Varying {
    /// From a request as it was built, with this body.
    ///
    /// # Errors
    /// A place whose numbers are none, or a coding of the body.
    pub fn new(built: &[u8], body: &[u8]) -> Result<Self, Refusal> {
        let Some(head) = built.strip_suffix(body) else {
            let text = "a request that varies has no Transfer-Encoding: leave out the header";
            return Err(Refusal::BadSpec(text.into()));
        };
        let (mut head, body) = (Template::new(head)?, Template::new(body)?);
        if body.varies() {
            head.count_body()?;
        }
        Ok(Self { head, body })
    }

    /// Replaces `out` by the request with this number. Its random numbers are those of the seed and the
    /// number. `body` is a buffer.
    pub fn render(&self, out: &mut Vec<u8>, body: &mut Vec<u8>, sequence: u64, seed: u64) {
        out.clear();
        body.clear();
        let mut numbers = Numbers::new(sequence, seed);
        self.body.render(body, 0, &mut numbers);
        self.head.render(out, body.len(), &mut numbers);
        out.extend_from_slice(body);
    }
}

impl Template {
    pub(crate) fn new(mut text: &[u8]) -> Result<Self, Refusal> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        while let Some((first, rest)) = text.split_first() {
            if let Some((piece, rest)) = place(text)? {
                pieces.extend([Piece::Text(std::mem::take(&mut literal)), piece]);
                text = rest;
            } else {
                literal.push(*first);
                text = rest;
            }
        }
        pieces.push(Piece::Text(literal));
        Ok(Self(pieces))
    }

    /// A text as it is.
    pub(crate) fn constant(text: &[u8]) -> Self {
        Self(vec![Piece::Text(text.to_vec())])
    }

    /// The length of the body.
    pub(crate) fn length() -> Self {
        Self(vec![Piece::Text(Vec::new()), Piece::Length])
    }

    pub(crate) fn varies(&self) -> bool {
        self.0.len() > 1
    }

    /// The length in a header becomes that of the body.
    fn count_body(&mut self) -> Result<(), Refusal> {
        const NAME: &[u8] = b"content-length:";
        for at in 0..self.0.len() {
            let Piece::Text(text) = &self.0[at] else { continue };
            let is_name = |part: &[u8]| part.eq_ignore_ascii_case(NAME);
            let Some(start) = text.windows(NAME.len()).position(is_name) else { continue };
            let (before, rest) = text.split_at(start + NAME.len());
            let end = rest.iter().position(|byte| *byte == b'\r').unwrap_or(rest.len());
            let before = [before, b" "].concat();
            let pieces = [Piece::Text(before), Piece::Length, Piece::Text(rest[end..].to_vec())];
            self.0.splice(at..=at, pieces);
            return Ok(());
        }
        Err(Refusal::BadSpec("a body that varies needs a Content-Length: leave it to linerate".into()))
    }

    pub(crate) fn render(&self, out: &mut Vec<u8>, length: usize, numbers: &mut Numbers) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Sequence => put_number(out, numbers.sequence),
                Piece::Random { least, most } => put_number(out, numbers.random(*least, *most)),
                Piece::Length => put_number(out, length as u64),
            }
        }
    }
}

/// A place for a number at the start of `text`, and what is behind it.
fn place(text: &[u8]) -> Result<Option<(Piece, &[u8])>, Refusal> {
    if let Some(rest) = text.strip_prefix(b"{seq}") {
        return Ok(Some((Piece::Sequence, rest)));
    }
    let Some(rest) = text.strip_prefix(b"{rand:") else { return Ok(None) };
    let end = rest.iter().position(|byte| *byte == b'}').unwrap_or(rest.len());
    let bounds = std::str::from_utf8(&rest[..end]).ok().and_then(|text| text.split_once(':'));
    let bounds = bounds.and_then(|(least, most)| Some((least.parse().ok()?, most.parse().ok()?)));
    match bounds {
        Some((least, most)) if least <= most && end < rest.len() => {
            Ok(Some((Piece::Random { least, most }, &rest[end + 1..])))
        }
        _ => {
            let wrong = String::from_utf8_lossy(&rest[..end]);
            Err(Refusal::BadSpec(format!(
                "a random number is {{rand:1:1000}}, from least to most: {wrong:?}"
            )))
        }
    }
}

/// In decimal digits.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    let start = out.len();
    loop {
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::build;

    fn varying(path: &str, request: &Request) -> Result<Varying, Refusal> {
        Varying::new(&build(path, "shop", true, request)?, &request.body)
    }

    #[test]
    fn numbers_are_in_the_target_the_headers_and_the_body_whose_length_follows() {
        let request = Request {
            headers: vec!["Id: {seq}".into()],
            body: "{\"id\": {rand:7:7}, \"n\": {seq}}".into(),
            ..Request::default()
        };
        assert!(varies("/", &request) && varies("/{seq}", &Request::default()));
        assert!(!varies("/{id}", &Request::default()));
        let varying = varying("/items/{rand:5:5}?n={seq}", &request).unwrap();
        let (mut out, mut body) = (Vec::new(), Vec::new());
        varying.render(&mut out, &mut body, 9, 1);
        varying.render(&mut out, &mut body, 12, 1);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "GET /items/5?n=12 HTTP/1.1\r\nHost: shop\r\nContent-Length: 18\r\nId: 12\r\n\r\n\
             {\"id\": 7, \"n\": 12}"
        );
    }

    #[test]
    fn random_numbers_fill_their_range_evenly() {
        let mut counts = [0_u32; 10];
        for sequence in 0..10_000 {
            let number = Numbers { sequence, state: sequence }.random(3, 12);
            counts[number as usize - 3] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        assert!((0..100).all(|state| Numbers { sequence: 0, state }.random(0, u64::MAX) > 0));
    }

    #[test]
    fn bounds_that_are_none_and_a_body_without_a_length_are_refused() {
        for path in ["/{rand:1}", "/{rand:9:1}", "/{rand:a:b}", "/{rand:1:2"] {
            let error = varying(path, &Request::default()).unwrap_err().to_string();
            assert!(error.contains("from least to most"), "{path}: {error}");
        }
        let headers = vec!["Transfer-Encoding: chunked".into()];
        let chunked = Request { headers, body: "{seq}".into(), ..Request::default() };
        assert!(varying("/", &chunked).unwrap_err().to_string().contains("Transfer-Encoding"));
    }
}
