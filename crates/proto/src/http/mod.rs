//! HTTP/1.1 (RFC 9112) for both ends.
//!
//! | module | contents |
//! |---|---|
//! | [`request`] | requests: made by a client, parsed by a server |
//! | [`response`] | responses in pieces of any size, their heads and bodies |
//! | `chunked` | bodies in chunks |

mod chunked;
pub mod request;
pub mod response;
