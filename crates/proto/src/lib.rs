//! Protocol state without I/O and without a clock: bytes in, bytes and events out. Tests and fuzz targets of
//! a parser need no socket. Datagrams of streams over UDP are in [`linerate_contract::datagram`], which
//! systems link.
//!
//! | module | contents |
//! |---|---|
//! | [`http`] | HTTP/1.1: requests made and parsed, responses in pieces of any size, chunked bodies |
//! | [`h2`] | HTTP/2: header compression, flow control, streams of both ends |
//! | [`h3`] | HTTP/3: header compression, requests and responses on streams |
//! | [`fields`] | what HTTP/2 and HTTP/3 have in common: coding and fields of messages |
//! | [`events`] | events within the body of a response, such as server-sent ones |
//! | [`websocket`] | RFC 6455: frames, masks, messages, the upgrade |
//! | [`record`] | records of TLS 1.3, sealed and opened in place |
//! | [`speech`] | which protocol the first bytes of a peer are of |
//! | [`frames`] | the framed stream in a conversation of KCP |

pub mod events;
pub mod fields;
pub mod frames;
pub mod h2;
pub mod h3;
pub mod http;
pub mod record;
pub mod speech;
pub mod websocket;
