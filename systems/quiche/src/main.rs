//! quiche as a system of linerate (sdk/CONTRACT.md): `quiche-system SPEC`. One thread and one socket, as its
//! examples `server` and `http3-server`; datagrams of equal length leave in one call.

mod endpoint;
mod pages;
mod performance;

use boring::error::ErrorStack;
use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::X509;
use linerate_contract::program::{self, Refusal};
use linerate_contract::{Describe, Done, Role, Spec, Tls, page};
use linerate_sdk::{missing, perf, unsupported};
use pages::Pages;
use performance::Performance;
use quiche::Config;
use std::error::Error;
use std::rc::Rc;

/// The settings of the example `http3-server`, but for the time after which idle connections end.
const LONGEST_DATAGRAM: usize = 1350;
const WINDOW: u64 = 10_000_000;
const WINDOW_OF_STREAM: u64 = 1_000_000;
const STREAMS: u64 = 100;
const IDLE_MS: u64 = 30_000;

fn main() {
    program::run("quiche-system", perf::OPTIONS, describe, run);
}

fn describe(_: &Spec) -> Describe {
    linerate_sdk::describe("quiche", env!("QUICHE_VERSION"), &[Role::Server], &["h3", "quic"], &["crr", "rr"])
}

fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    match (spec.role, spec.layer.as_str(), spec.workload.as_str()) {
        (Role::Server, "quic", "rr" | "crr") => {
            let piece = perf::piece();
            endpoint::serve(spec, config(spec, perf::ALPN)?, || Performance::new(piece.clone()))
        }
        (Role::Server, "h3", "rr" | "crr") => {
            let page: Rc<[u8]> = page(spec.size as usize).into();
            let settings = quiche::h3::Config::new().map_err(|error| bad(&error))?;
            let settings = Rc::new(settings);
            endpoint::serve(spec, config(spec, b"h3")?, || Pages::new(page.clone(), settings.clone()))
        }
        _ => Err(unsupported(spec)),
    }
}

fn config(spec: &Spec, protocol: &[u8]) -> Result<Config, Refusal> {
    let keys = spec.tls.as_ref().ok_or_else(|| missing("tls"))?;
    let tls = tls(keys).map_err(|error| bad(&error))?;
    let config = Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls);
    let mut config = config.map_err(|error| bad(&error))?;
    config.set_application_protos(&[protocol]).map_err(|error| bad(&error))?;
    config.set_max_idle_timeout(IDLE_MS);
    config.set_max_recv_udp_payload_size(LONGEST_DATAGRAM);
    config.set_max_send_udp_payload_size(LONGEST_DATAGRAM);
    config.set_initial_max_data(WINDOW);
    config.set_initial_max_stream_data_bidi_local(WINDOW_OF_STREAM);
    config.set_initial_max_stream_data_bidi_remote(WINDOW_OF_STREAM);
    config.set_initial_max_stream_data_uni(WINDOW_OF_STREAM);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_initial_max_streams_uni(STREAMS);
    config.set_disable_active_migration(true);
    Ok(config)
}

fn tls(keys: &Tls) -> Result<SslContextBuilder, ErrorStack> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    let mut chain = X509::stack_from_pem(keys.certificate.as_bytes())?.into_iter();
    if let Some(own) = chain.next() {
        tls.set_certificate(&own)?;
    }
    chain.try_for_each(|issuer| tls.add_extra_chain_cert(issuer))?;
    tls.set_private_key(&*PKey::private_key_from_pem(keys.key.as_bytes())?)?;
    Ok(tls)
}

fn bad(error: &dyn Error) -> Refusal {
    Refusal::BadSpec(format!("\"tls\": {error}"))
}
