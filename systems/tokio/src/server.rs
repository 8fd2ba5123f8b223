//! The TCP servers: accept, one task per connection with `read` and `write_all`, as in tokio's tutorial.

use crate::http;
use linerate_contract::Spec;
use linerate_contract::program::Refusal;
use linerate_sdk::server::{accept, echo, listen, serve};
use linerate_sdk::stream::Stream;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;

/// The server's side of a connection.
enum Service {
    Echo,
    Http(http::Answers),
    Stream(Stream),
}

/// Serves until SIGTERM.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    let service = Arc::new(match (spec.layer.as_str(), spec.workload.as_str()) {
        ("http", _) => Service::Http(http::Answers::new(spec.size as usize)),
        (_, "stream") => Service::Stream(Stream::new(spec)?),
        _ => Service::Echo,
    });
    serve(spec, async |address| {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        tokio::spawn(accept(listener, move |stream| {
            let service = service.clone();
            // A peer that vanishes ends its own connection only.
            tokio::spawn(async move { serve_one(stream, &service).await });
        }));
        Ok(address)
    })
}

async fn serve_one(mut stream: TcpStream, service: &Service) -> io::Result<()> {
    let (reader, writer) = stream.split();
    match service {
        Service::Echo => echo(reader, writer).await,
        Service::Stream(served) => served.serve(reader, writer).await,
        Service::Http(answers) => http::serve(stream, answers).await,
    }
}
