//! `linerate-load` as its users see it: processes, on loopback. One program, so that it links once.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

mod addresses;
mod alternating;
mod causes;
mod certified;
mod common;
mod crr;
mod events;
mod gaps;
mod h2;
mod h2_others;
mod h3;
mod h3_others;
mod habits;
mod hang;
mod hostile;
mod hostile_clients;
mod http;
mod http_server;
mod neighbours;
mod paced;
mod pipelined;
mod program;
mod quic;
#[allow(dead_code, reason = "shared with the hostile peers")]
mod quic_peer;
mod sessions;
mod several;
mod spinning;
mod stage;
mod tcp;
mod terminating;
mod tls;
mod trust;
mod udp;
mod websocket;
mod withdrawn;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate-load");
