//! The protocol on the streams of a client.

use crate::layer::Response;
use crate::refusal::Refusal;
use bytes::Bytes;
use linerate_contract::{ErrorKind, Spec};
use std::collections::BTreeMap;

/// The protocol on the streams: the client's end.
pub(crate) trait ClientProtocol: Clone + Send + Sized + 'static {
    /// The name in the handshake (RFC 7301).
    const ALPN: &'static [u8];
    /// The code that a connection or a stream is ended with when nothing is wrong.
    const DONE: u32;
    /// The code of a connection whose responses keep too much.
    const OVERLOAD: u32 = Self::DONE;
    /// The state of a response, used again by the next one.
    type Reader: Clone + Default + Send;
    /// The state of a unidirectional stream of the peer's.
    type PeerStream: Default + Send;

    /// # Errors
    /// The spec lacks something.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    /// All bytes of an operation's stream, of each request.
    fn requests(&self) -> Box<[Bytes]>;

    /// The bytes of the request with this number, where they are others each time.
    fn varied(&mut self, _request: u32) -> Option<Bytes> {
        None
    }

    /// The content of a connection's first unidirectional stream; empty: there is no stream.
    fn opening(&self) -> Bytes;

    /// Before the first byte of a response to the request with this number.
    fn begin(&mut self, reader: &mut Self::Reader, request: u32);

    /// The events of a response since the last call, where the spec asks for them.
    fn take_events(_reader: &mut Self::Reader) -> u32 {
        0
    }

    /// Bytes of a response.
    ///
    /// # Errors
    /// Why the operation has failed.
    fn feed(&mut self, reader: &mut Self::Reader, bytes: &[u8]) -> Result<(), Fault>;

    /// Bytes that a response under way keeps.
    fn kept(_reader: &Self::Reader) -> usize {
        0
    }

    /// The end of a response.
    ///
    /// # Errors
    /// Why the operation has failed.
    fn finish(&mut self, reader: &mut Self::Reader) -> Result<Response, Fault>;

    /// Bytes of a unidirectional stream of the peer's. Returns the number of the first stream that the peer
    /// does not look at any more, if it says so.
    ///
    /// # Errors
    /// The code that the connection is ended with.
    fn feed_peer(&mut self, _stream: &mut Self::PeerStream, _bytes: &[u8]) -> Result<Option<u64>, u32> {
        Ok(None)
    }

    /// The code that the connection is ended with where the peer has both of these.
    fn are_too_many(_one: &Self::PeerStream, _other: &Self::PeerStream) -> Option<u32> {
        None
    }

    /// The end of such a stream.
    ///
    /// # Errors
    /// As [`Self::feed_peer`].
    fn finish_peer(&mut self, _stream: &Self::PeerStream) -> Result<(), u32> {
        Ok(())
    }

    /// The name of a code.
    fn name(code: u64) -> String;

    /// Responses by status, where the protocol has one.
    fn statuses(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

/// Why a response is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    /// The peer has broken the protocol: the connection ends with this code.
    pub(crate) ends: Option<u32>,
    /// The status of a whole response that is wrong; else 0.
    pub(crate) status: u16,
}

impl From<ErrorKind> for Fault {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, ends: None, status: 0 }
    }
}
