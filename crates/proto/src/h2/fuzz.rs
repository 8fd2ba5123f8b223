//! Code of the fuzz targets: a panic is a fault, and so is a result that depends on the pieces that bytes
//! come in.

use super::client::{Client, EncodedRequest, Ended, Responses};
use super::hpack::Decoder;
use super::server::{Content, Server};
use super::{Code, PREFACE};
use crate::http::response::Head;
use linerate_contract::Request;

/// Header blocks of one connection: each is a byte of length and that many bytes.
pub fn fuzz_hpack(mut input: &[u8]) {
    const MOST: usize = 10_000;
    let mut decoder = Decoder::default();
    while let Some((length, rest)) = input.split_first() {
        let (block, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        input = rest;
        let mut size = 0;
        if decoder.decode(block, MOST, |name, value| size += name.len() + value.len() + 32).is_err() {
            return;
        }
        assert!(size <= MOST);
    }
}

/// Frames of a server, behind its settings; the first byte is the length of the pieces, the second the number
/// of requests under way, some of them with a body.
pub fn fuzz_client(input: &[u8]) {
    let [length, requests, frames @ ..] = input else { return };
    let run = |size: usize| {
        let (mut client, mut log) = (Client::new(8), Log::default());
        client.feed(&[0, 0, 0, 4, 0, 0, 0, 0, 0], &mut log).expect("settings are good");
        let of = |body: &str| {
            let request = Request { body: body.into(), ..Request::default() };
            EncodedRequest::new("http", "/", "h", &request).expect("a good request")
        };
        let mut all = [of(""), of("body")];
        all.iter_mut().zip(0..).for_each(|(request, number)| request.is_one_of_several(number));
        for number in 0..requests % 9 {
            client.start(&all[usize::from(number % 3 == 2)]);
        }
        let outcome = frames.chunks(size).try_for_each(|piece| client.feed(piece, &mut log));
        (outcome, log.0, client.pending(&all).to_vec(), client.under_way(), client.is_over())
    };
    assert_eq!(run(usize::from(*length).max(1)), run(frames.len().max(1)));
}

/// Frames of a client, behind the preface if the second byte is odd, to a server of gRPC if it is above 127;
/// the first is the length of the pieces.
pub fn fuzz_server(input: &[u8]) {
    let [length, choice, frames @ ..] = input else { return };
    let content = if *choice > 127 { Content::call(&[b'p'; 30], 1) } else { Content::page(&[b'p'; 30]) };
    let run = |size: usize| {
        let (mut server, mut output) = (Server::default(), Vec::new());
        if choice % 2 == 1 {
            server.feed(PREFACE).expect("the preface is good");
        }
        let outcome = frames.chunks(size).try_for_each(|piece| server.feed(piece));
        let mut room = [0; 300];
        while server.has_output() {
            let written = server.fill(&content, &mut room);
            assert!(written > 0, "it waits for nothing");
            output.extend_from_slice(&room[..written]);
        }
        (outcome, output)
    };
    assert_eq!(run(usize::from(*length).max(1)), run(frames.len().max(1)));
}

/// The reports of a client, with the pieces of a body joined.
#[derive(Debug, Default)]
struct Log(Vec<Event>);

#[derive(Debug, PartialEq)]
enum Event {
    Head(usize, Head),
    Body(usize, Vec<u8>),
    End(usize, u64, Ended),
    Goaway(Code),
}

impl Responses for Log {
    fn head(&mut self, lane: usize, head: &Head) {
        self.0.push(Event::Head(lane, *head));
    }

    fn body(&mut self, lane: usize, at: u64, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(Event::Body(last, body)) if *last == lane => body.extend_from_slice(bytes),
            _ => self.0.push(Event::Body(lane, bytes.to_vec())),
        }
        assert!(at < 1 << 40);
    }

    fn end(&mut self, lane: usize, bytes: u64, ended: Ended) {
        self.0.push(Event::End(lane, bytes, ended));
    }

    fn goaway(&mut self, code: Code, _keeps: bool) {
        self.0.push(Event::Goaway(code));
    }
}

#[cfg(test)]
#[path = "../../../../fuzz/each_seed.rs"]
mod each_seed;

#[cfg(test)]
mod tests {
    use super::each_seed::each_seed;

    #[test]
    fn every_target_accepts_its_seeds_and_changes_of_them() {
        each_seed("hpack", super::fuzz_hpack);
        each_seed("h2_client", super::fuzz_client);
        each_seed("h2_server", super::fuzz_server);
    }
}
