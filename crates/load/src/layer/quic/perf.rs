//! The protocol of performance tests (draft-banks-quic-performance-00): a request begins with the length of
//! its response, in eight bytes; all else may be anything. MsQuic's `secnetperf` has the same.

use super::client::{ClientProtocol, Fault};
use super::server::{Content, ServerProtocol};
use crate::cause::note;
use crate::layer::Response;
use crate::refusal::Refusal;
use bytes::Bytes;
use linerate_contract::{Cause, ErrorKind, Spec, page};

const ALPN: &[u8] = b"perf";
/// Bytes of the length.
const PREFIX: usize = 8;
/// The size of the piece that responses consist of, again and again.
const PIECE: usize = 64 << 10;
/// The longest request, in bytes.
const LONGEST: u64 = 1 << 30;

/// The client's end: requests of `size` bytes and responses of as many, or of `options.response`.
#[derive(Debug, Clone)]
pub(crate) struct Perf {
    request: Bytes,
    response: u64,
}

impl ClientProtocol for Perf {
    const ALPN: &'static [u8] = ALPN;
    const DONE: u32 = 0;
    /// Bytes so far.
    type Reader = u64;
    type PeerStream = ();

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        if !(PREFIX as u64..=LONGEST).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be {PREFIX} to {LONGEST} bytes")));
        }
        let response = spec.number("response", 0..=u64::MAX)?.unwrap_or(spec.size);
        let mut request = page(spec.size as usize);
        request[..PREFIX].copy_from_slice(&response.to_be_bytes());
        Ok(Self { request: request.into(), response })
    }

    fn requests(&self) -> Box<[Bytes]> {
        [self.request.clone()].into()
    }

    fn opening(&self) -> Bytes {
        Bytes::new()
    }

    #[inline]
    fn begin(&mut self, reader: &mut u64, _request: u32) {
        *reader = 0;
    }

    #[inline]
    fn feed(&mut self, reader: &mut u64, bytes: &[u8]) -> Result<(), Fault> {
        *reader += bytes.len() as u64;
        if *reader > self.response { Err(self.another_length(*reader).into()) } else { Ok(()) }
    }

    #[inline]
    fn finish(&mut self, reader: &mut u64) -> Result<Response, Fault> {
        if *reader != self.response {
            return Err(self.another_length(*reader).into());
        }
        // As of an echo, the bytes of one direction count: the longer one. The content may be anything, so
        // there is nothing to compare.
        let bytes = (self.request.len() as u64).max(*reader);
        Ok(Response { bytes, verified: false, reusable: true, status: 0 })
    }

    fn name(code: u64) -> String {
        format!("code {code}")
    }
}

impl Perf {
    #[cold]
    fn another_length(&self, bytes: u64) -> ErrorKind {
        let text = format!("{bytes} bytes in place of {}", self.response);
        note(ErrorKind::WrongLength, || Cause::new(text))
    }
}

/// The server's end.
#[derive(Debug, Clone)]
pub(crate) struct PerfService {
    piece: Bytes,
}

/// A request under way: its first bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefix {
    bytes: [u8; PREFIX],
    have: usize,
}

impl ServerProtocol for PerfService {
    const ALPN: &'static [u8] = ALPN;
    type Request = Prefix;
    type PeerStream = ();

    fn new(_spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self { piece: page(PIECE).into() })
    }

    fn opening(&self) -> Bytes {
        Bytes::new()
    }

    #[inline]
    fn feed(&self, request: &mut Prefix, bytes: &[u8]) -> Result<(), u32> {
        let count = (PREFIX - request.have).min(bytes.len());
        request.bytes[request.have..request.have + count].copy_from_slice(&bytes[..count]);
        request.have += count;
        Ok(())
    }

    #[inline]
    fn finish(&self, request: &Prefix) -> Result<Content, u32> {
        if request.have < PREFIX {
            return Err(1);
        }
        Ok(Content { piece: self.piece.clone(), total: u64::from_be_bytes(request.bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    #[test]
    fn a_request_says_how_long_its_response_is() {
        let mut spec = Spec::new(Role::Client, Layer::Quic, Workload::Rr);
        spec.size = 100;
        spec.set_option("response", 5_000_000_000_u64);
        let client = Perf::new(&spec).unwrap();
        let (service, mut prefix) = (PerfService::new(&spec).unwrap(), Prefix::default());
        let request = &client.requests()[0];
        request.chunks(3).for_each(|piece| service.feed(&mut prefix, piece).unwrap());
        assert_eq!((request.len(), service.finish(&prefix).unwrap().total), (100, 5_000_000_000));
        assert_eq!(service.finish(&Prefix::default()).unwrap_err(), 1);
        spec.size = 7;
        assert!(Perf::new(&spec).is_err());
    }
}
