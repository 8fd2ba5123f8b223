//! Why requests over HTTP/2 fail, in words, with the bytes behind it.

use crate::cause::note;
use linerate_contract::{Cause, ErrorKind};
use linerate_proto::h2::Code;
use linerate_proto::h2::client::{Client, Ended};
use linerate_proto::speech::spoken;

/// The server has closed the connection before its settings.
#[cold]
pub(super) fn no_settings(client: &Client) -> ErrorKind {
    let bytes = client.unfinished();
    let Some(protocol) = spoken(bytes) else {
        let text = "the server closed the connection before its settings";
        return note(ErrorKind::EmptyResponse, || Cause::showing(text, bytes));
    };
    let text = format!("not HTTP/2: the server speaks {protocol} there");
    note(ErrorKind::Malformed, || Cause::showing(text, bytes))
}

/// The server has closed the connection; `has_begun`: within a response.
#[cold]
pub(super) fn closed(client: &Client, has_begun: bool) -> ErrorKind {
    let kind = if has_begun { ErrorKind::Truncated } else { ErrorKind::EmptyResponse };
    let text = format!("the server closed the connection with {} requests under way", client.under_way());
    note(kind, || Cause::new(text))
}

/// The kind of bytes that are none of HTTP/2.
#[cold]
pub(super) fn broken(code: Code, bytes: &[u8]) -> ErrorKind {
    note(ErrorKind::Malformed, || {
        let text = match spoken(bytes).filter(|protocol| *protocol != "HTTP/2") {
            Some(protocol) => format!("not HTTP/2: the server speaks {protocol} there"),
            None => format!("the server breaks the rules of HTTP/2 ({code})"),
        };
        Cause::showing(text, bytes)
    })
}

/// A connection has failed otherwise.
#[cold]
pub(super) fn connection(kind: ErrorKind) -> ErrorKind {
    match kind {
        ErrorKind::Reset => note(kind, || Cause::new("the server reset the connection")),
        kind => kind,
    }
}

/// A peer makes this end keep too much.
#[cold]
pub(super) fn too_much() -> ErrorKind {
    let text = "unfinished frames and fields of more than this end keeps";
    note(ErrorKind::Malformed, || Cause::new(text))
}

/// A stream has ended without a whole response.
#[cold]
pub(super) fn stream(ended: Ended) -> ErrorKind {
    let (kind, text) = match ended {
        Ended::Complete | Ended::Malformed => {
            let text = "a response that breaks the rules for messages (RFC 9113, 8.1.1)";
            (ErrorKind::Malformed, text.to_owned())
        }
        Ended::Reset(code) => (ErrorKind::Reset, format!("the server ended the stream: RST_STREAM {code}")),
        Ended::Unprocessed(code) => {
            let kind = if code == Code::NO_ERROR { ErrorKind::EmptyResponse } else { ErrorKind::Reset };
            (kind, format!("the server ends the connection without a response: GOAWAY {code}"))
        }
    };
    note(kind, || Cause::new(text))
}
