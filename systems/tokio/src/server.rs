//! The TCP servers: accept, one task per connection with `read` and `write_all`, as in tokio's tutorial.

use crate::http;
use linerate_contract::Spec;
use linerate_contract::program::Refusal;
use linerate_sdk::server::{accept, echo, listen, serve};
use linerate_sdk::stream::Stream;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// The server's side of a connection.
enum Service {
    Echo,
    Http(http::Answers),
    Stream(Stream),
}

impl Service {
    fn new(spec: &Spec) -> Result<Arc<Self>, Refusal> {
        Ok(Arc::new(match (spec.layer.as_str(), spec.workload.as_str()) {
            ("http", _) => Self::Http(http::Answers::new(spec.size as usize)),
            (_, "stream") => Self::Stream(Stream::new(spec)?),
            _ => Self::Echo,
        }))
    }

    /// Listens, and spawns a task for each connection. Returns the bound address.
    fn start(self: Arc<Self>, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        tokio::spawn(accept(listener, move |stream| {
            let service = self.clone();
            // A peer that vanishes ends its own connection only.
            tokio::spawn(async move { serve_one(stream, &service).await });
        }));
        Ok(address)
    }
}

/// Serves until SIGTERM.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    let service = Service::new(spec)?;
    serve(spec, async |address| service.start(address))
}

/// The spec of a client; with both ends in one loop, after its server has been started on the same runtime.
pub fn beside(spec: &Spec, runtime: &Runtime) -> Result<Spec, Refusal> {
    let mut spec = spec.clone();
    if spec.ends()?.is_some() {
        let _entered = runtime.enter();
        spec.connect = Some(Service::new(&spec)?.start((Ipv4Addr::LOCALHOST, 0).into())?);
    }
    Ok(spec)
}

async fn serve_one(mut stream: TcpStream, service: &Service) -> io::Result<()> {
    let (reader, writer) = stream.split();
    match service {
        Service::Echo => echo(reader, writer).await,
        Service::Stream(served) => served.serve(reader, writer).await,
        Service::Http(answers) => http::serve(stream, answers).await,
    }
}
