//! hyper's servers of HTTP/1.1 and HTTP/2 on tokio as a system of linerate (sdk/CONTRACT.md):
//! `hyper-system SPEC`. As the example `hello` of hyper: a task per connection, and a service that answers
//! any request with the page.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use linerate_contract::program::{self, Refusal};
use linerate_contract::{Describe, Done, Layer, Role, Spec, page};
use linerate_sdk::{server, unsupported};
use std::convert::Infallible;

fn main() {
    // The streams are the client's.
    program::run("hyper-system", &["streams"], describe, run);
}

fn describe(_: &Spec) -> Describe {
    linerate_sdk::describe("hyper", env!("HYPER_VERSION"), &[Role::Server], &["h2c", "http"], &["crr", "rr"])
}

fn run(spec: &Spec) -> Result<Option<Done>, Refusal> {
    match (spec.role, spec.layer.as_str(), spec.workload.as_str()) {
        (Role::Server, "http", "rr" | "crr") | (Role::Server, "h2c", "rr") => serve(spec).map(|()| None),
        _ => Err(unsupported(spec)),
    }
}

fn serve(spec: &Spec) -> Result<(), Refusal> {
    let page = Bytes::from(page(spec.size as usize));
    let is_h2 = spec.layer == Layer::H2c;
    server::serve(spec, async |address| {
        let listener = server::listen(address)?;
        let address = listener.local_addr()?;
        tokio::spawn(server::accept(listener, move |stream| {
            let page = page.clone();
            let service = service_fn(move |_: Request<Incoming>| {
                let response = response(page.clone());
                async { Ok::<_, Infallible>(response) }
            });
            let stream = TokioIo::new(stream);
            // A peer that vanishes ends its own connection only.
            if is_h2 {
                let builder = http2::Builder::new(TokioExecutor::new());
                tokio::spawn(async move { drop(builder.serve_connection(stream, service).await) });
            } else {
                let mut builder = http1::Builder::new();
                let connection = builder.timer(TokioTimer::new()).serve_connection(stream, service);
                tokio::spawn(async { drop(connection.await) });
            }
        }));
        Ok(address)
    })
}

fn response(page: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(page));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
