//! Why requests fail, in words, with the bytes behind it.

use super::{Exchange, Responses};
use crate::cause::note;
use linerate_contract::{Cause, ErrorKind};
use linerate_proto::http::response::{BodyFraming, Head, Malformed};
use linerate_proto::speech::spoken;

impl<const SEVERAL: bool> Responses<'_, SEVERAL> {
    #[cold]
    pub(super) fn note_malformed(malformed: Malformed, bytes: &[u8]) -> ErrorKind {
        note(ErrorKind::Malformed, || {
            let speech = spoken(bytes).filter(|_| malformed == Malformed::NotHttp);
            let text = match speech {
                Some(protocol) => format!("{malformed}: the server speaks {protocol} there"),
                None => malformed.to_string(),
            };
            Cause::showing(text, bytes)
        })
    }

    /// A response that is not the expected one, with its last bytes.
    #[cold]
    pub(super) fn note_wrong(&mut self, kind: ErrorKind, head: &Head, bytes: &[u8]) {
        let body = match head.framing {
            BodyFraming::Length(length) => length,
            _ => self.exchange.parser.body_bytes(),
        };
        let verifier = &self.reader.mix.kind(self.exchange.kind).verifier;
        verifier.note(kind, head.status, body, bytes);
    }
}

/// The connection has ended under a request.
#[cold]
pub(super) fn note_end(exchange: &Exchange, kind: ErrorKind) {
    let how = match kind {
        ErrorKind::Reset => "the server reset the connection",
        ErrorKind::EmptyResponse | ErrorKind::Truncated => "the server closed the connection",
        _ => return,
    };
    let parser = &exchange.parser;
    note(kind, || {
        let place = match parser.head() {
            None if parser.is_fresh() => "before the first byte of a response".to_owned(),
            None => "within the head of a response".into(),
            Some(Head { framing: BodyFraming::Length(length), .. }) => {
                format!("after {} of {length} bytes of a body", parser.body_bytes())
            }
            Some(_) => format!("after {} bytes of a body, before its end", parser.body_bytes()),
        };
        Cause::new(format!("{how} {place}"))
    });
}
