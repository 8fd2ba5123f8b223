//! quinn as a system of linerate (sdk/CONTRACT.md): `quinn-system SPEC`. The servers are as quinn's example
//! `server` and h3's example `server`: a task per connection, and a task per stream.

mod client;

use bytes::Bytes;
use h3::server::RequestResolver;
use http::Response;
use linerate_contract::options::Choice;
use linerate_contract::program::{self, Refusal};
use linerate_contract::resumption::Handshakes;
use linerate_contract::{Describe, Done, Role, Spec, page};
use linerate_sdk::{missing, perf, server, unsupported};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, Incoming, RecvStream, SendStream, ServerConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::error::Error;
use std::io;
use std::sync::Arc;

fn main() {
    program::run("quinn-system", &[perf::OPTIONS, &[Handshakes::OPTION]].concat(), describe, run);
}

fn describe(_: &Spec) -> Describe {
    let version = concat!(env!("QUINN_VERSION"), " (h3 ", env!("H3_VERSION"), ")");
    linerate_sdk::describe("quinn", version, &[Role::Client, Role::Server], &["h3", "quic"], &["crr", "rr"])
}

fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    match (spec.role, spec.layer.as_str(), spec.workload.as_str()) {
        (Role::Client, "quic", "rr" | "crr") if spec.rate.is_none() => client::run(spec).map(Some),
        (Role::Server, "h3", "rr" | "crr") => {
            let page = Bytes::from(page(spec.size as usize));
            serve(spec, b"h3", move |incoming| drop(tokio::spawn(pages(incoming, page.clone()))))
        }
        (Role::Server, "quic", "rr" | "crr") => {
            let piece = perf::piece();
            serve(spec, perf::ALPN, move |incoming| drop(tokio::spawn(answers(incoming, piece.clone()))))
        }
        _ => Err(unsupported(spec)),
    }
}

fn serve(
    spec: &Spec,
    protocol: &[u8],
    handle: impl Fn(Incoming) + Send + 'static,
) -> Result<Option<Done>, Refusal> {
    let config = config(spec, protocol)?;
    server::serve(spec, async |address| {
        let endpoint = Endpoint::server(config, address)?;
        let address = endpoint.local_addr()?;
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                handle(incoming);
            }
        });
        Ok(address)
    })
    .map(|()| None)
}

fn config(spec: &Spec, protocol: &[u8]) -> Result<ServerConfig, Refusal> {
    let tls = spec.tls.as_ref().ok_or_else(|| missing("tls"))?;
    let chain = CertificateDer::pem_slice_iter(tls.certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|e| bad(&e))?;
    let key = PrivateKeyDer::from_pem_slice(tls.key.as_bytes()).map_err(|e| bad(&e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|e| bad(&e))?;
    tls.alpn_protocols = vec![protocol.to_vec()];
    Handshakes::from_spec(spec)?.set(&mut tls)?;
    Ok(ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).map_err(|e| bad(&e))?)))
}

fn bad(error: &dyn Error) -> Refusal {
    Refusal::BadSpec(format!("\"tls\": {error}"))
}

/// A connection of HTTP/3. A peer that vanishes ends its own connection only.
async fn pages(incoming: Incoming, page: Bytes) -> Result<(), Box<dyn Error + Send + Sync>> {
    let connection = h3_quinn::Connection::new(incoming.await?);
    let mut connection = h3::server::Connection::new(connection).await?;
    while let Some(request) = connection.accept().await? {
        tokio::spawn(answer(request, page.clone()));
    }
    Ok(())
}

async fn answer(
    request: RequestResolver<h3_quinn::Connection, Bytes>,
    page: Bytes,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (_, mut stream) = request.resolve_request().await?;
    let response = Response::builder()
        .header("content-type", "text/plain")
        .header("content-length", page.len())
        .body(())?;
    stream.send_response(response).await?;
    stream.send_data(page).await?;
    stream.finish().await?;
    Ok(())
}

/// A connection of draft-banks-quic-performance.
async fn answers(incoming: Incoming, piece: Bytes) -> Result<(), Box<dyn Error + Send + Sync>> {
    let connection = incoming.await?;
    loop {
        let (send, receive) = connection.accept_bi().await?;
        tokio::spawn(exchange(send, receive, piece.clone()));
    }
}

async fn exchange(
    mut send: SendStream,
    mut receive: RecvStream,
    piece: Bytes,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut prefix = [0; perf::PREFIX];
    receive.read_exact(&mut prefix).await?;
    while receive.read_chunk(usize::MAX, false).await?.is_some() {}
    for piece in perf::pieces(prefix, &piece) {
        send.write_chunk(piece).await?;
    }
    send.finish().map_err(io::Error::from)?;
    Ok(())
}
