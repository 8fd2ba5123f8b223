//! HTTP/1.1 (RFC 9112) for both ends.
//!
//! | module | contents |
//! |---|---|
//! | [`request`] | requests: made by a client, parsed by a server |
//! | [`response`] | responses in pieces of any size, their heads and bodies |
//! | [`vary`] | requests with numbers that are others each time |
//! | `chunked` | bodies in chunks |

mod chunked;
pub mod request;
pub mod response;
pub mod vary;
