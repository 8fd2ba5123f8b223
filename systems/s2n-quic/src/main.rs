//! s2n-quic as a system of linerate (sdk/CONTRACT.md): `s2n-quic-system SPEC`. As the examples of its guide:
//! a task per connection, and a task per stream.

mod client;

use bytes::Bytes;
use linerate_contract::program::{self, Refusal};
use linerate_contract::{Describe, Done, Role, Spec};
use linerate_sdk::{missing, perf, server, unsupported};
use s2n_quic::provider::tls::rustls;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Connection, Server};
use std::error::Error;
use std::io;

fn main() {
    program::run("s2n-quic-system", perf::OPTIONS, describe, run);
}

fn describe(_: &Spec) -> Describe {
    let roles = [Role::Client, Role::Server];
    linerate_sdk::describe("s2n-quic", env!("S2N_QUIC_VERSION"), &roles, &["quic"], &["rr"])
}

fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    match (spec.role, spec.layer.as_str(), spec.workload.as_str()) {
        (Role::Client, "quic", "rr") if spec.rate.is_none() => client::run(spec).map(Some),
        (Role::Server, "quic", "rr") => serve(spec).map(|()| None),
        _ => Err(unsupported(spec)),
    }
}

fn serve(spec: &Spec) -> Result<(), Refusal> {
    let keys = spec.tls.as_ref().ok_or_else(|| missing("tls"))?;
    let tls = rustls::Server::builder()
        .with_certificate(&*keys.certificate, &*keys.key)
        .and_then(|tls| tls.with_application_protocols([perf::ALPN].iter()))
        .and_then(|tls| tls.build())
        .map_err(|error| bad(&*error))?;
    server::serve(spec, async |address| {
        let server = Server::builder().with_tls(tls).map_err(io::Error::other)?;
        let server = server.with_io(address).map_err(io::Error::other)?;
        let mut server = server.start().map_err(io::Error::other)?;
        let address = server.local_addr()?;
        tokio::spawn(async move {
            let piece = perf::piece();
            while let Some(connection) = server.accept().await {
                tokio::spawn(answers(connection, piece.clone()));
            }
        });
        Ok(address)
    })
}

fn bad(error: &(dyn Error + 'static)) -> Refusal {
    Refusal::BadSpec(format!("\"tls\": {error}"))
}

/// A connection. A peer that vanishes ends its own only.
async fn answers(mut connection: Connection, piece: Bytes) {
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(answer(stream, piece.clone()));
    }
}

async fn answer(mut stream: BidirectionalStream, piece: Bytes) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (mut prefix, mut received) = ([0; perf::PREFIX], 0);
    while let Some(bytes) = stream.receive().await? {
        let count = bytes.len().min(perf::PREFIX - received);
        prefix[received..received + count].copy_from_slice(&bytes[..count]);
        received += count;
    }
    if received < perf::PREFIX {
        return Err("a request without the length of its answer".into());
    }
    for piece in perf::pieces(prefix, &piece) {
        stream.send(piece).await?;
    }
    stream.finish()?;
    Ok(())
}
