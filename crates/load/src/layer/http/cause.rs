//! Why requests fail: the first cause of each kind, in words, with the bytes behind it. None of it is on the
//! way of a request that succeeds.

use super::{Answers, Exchange, Reader};
use linerate_contract::{Cause, ErrorKind};
use linerate_proto::http::response::{BodyFraming, Head, Malformed};
use linerate_proto::speech::spoken;

impl<const SEVERAL: bool> Answers<'_, SEVERAL> {
    #[cold]
    pub(super) fn note_malformed(&mut self, malformed: Malformed, bytes: &[u8]) -> ErrorKind {
        self.reader.causes.note(ErrorKind::Malformed, || {
            let speech = spoken(bytes).filter(|_| malformed == Malformed::NotHttp);
            let text = match speech {
                Some(protocol) => format!("{malformed}: the server speaks {protocol} there"),
                None => malformed.to_string(),
            };
            Cause::showing(text, bytes)
        });
        ErrorKind::Malformed
    }

    /// An answer that is not the expected one, with its last bytes.
    #[cold]
    pub(super) fn note_wrong(&mut self, kind: ErrorKind, head: &Head, bytes: &[u8]) {
        let body = match head.framing {
            BodyFraming::Length(length) => length,
            _ => self.exchange.parser.body_bytes(),
        };
        let expect = self.reader.mix.kind(self.exchange.kind).verifier.expected();
        self.reader.causes.note(kind, || {
            let text = match (kind, expect.status, expect.bytes) {
                (ErrorKind::WrongStatus, Some(status), _) => {
                    format!("status {} in place of {status}", head.status)
                }
                (ErrorKind::WrongStatus, ..) => format!("status {} in place of 200 to 399", head.status),
                (ErrorKind::WrongLength, _, Some(length)) => format!("{body} bytes in place of {length}"),
                _ => format!("{body} bytes of another content than expected"),
            };
            Cause::showing(text, bytes)
        });
    }
}

impl<const SEVERAL: bool> Reader<SEVERAL> {
    /// The connection has ended under a request.
    #[cold]
    pub(super) fn note_end(&mut self, exchange: &Exchange, kind: ErrorKind) {
        let how = match kind {
            ErrorKind::Reset => "the server reset the connection",
            ErrorKind::EmptyReply | ErrorKind::Truncated => "the server closed the connection",
            _ => return,
        };
        let parser = &exchange.parser;
        let place = match parser.head() {
            None if parser.is_fresh() => "before the first byte of a response".to_owned(),
            None => "within the head of a response".into(),
            Some(Head { framing: BodyFraming::Length(length), .. }) => {
                format!("after {} of {length} bytes of a body", parser.body_bytes())
            }
            Some(_) => format!("after {} bytes of a body, before its end", parser.body_bytes()),
        };
        self.causes.note(kind, || Cause::new(format!("{how} {place}")));
    }
}
