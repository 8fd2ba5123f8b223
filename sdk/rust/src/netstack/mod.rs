//! The shared parts of systems that are a TCP/IP stack behind a TUN device. They differ in the stack only.
//!
//! ```text
//! spec -> Task -> tokio runtime (options.runtime) -> the system's code: device, stack, accept
//!      -> Task::serve -> stream.rs, or the stack's datagrams -> datagrams.rs
//! ```
//!
//! A connection is anything that reads and writes asynchronously. It is served as systems/tokio serves a
//! kernel socket, so that the difference between two rows is the stack.

mod datagrams;
pub mod device;

use crate::server::{echo, runtime};
use crate::stream::Stream;
use crate::{describe, missing, unsupported};
pub use datagrams::Datagrams;
use futures::StreamExt;
use linerate_contract::program::{self, Refusal};
use linerate_contract::{Event, Role, Runtime, Spec};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};

/// The smallest MTU of an IPv4 link that carries TCP with options (RFC 791).
const LEAST_MTU: u64 = 576;

/// The stack under test.
#[derive(Debug, Clone, Copy)]
pub struct System {
    pub name: &'static str,
    pub version: &'static str,
    /// Option names that only this program supports.
    pub options: &'static [&'static str],
}

/// The task of a stack.
#[derive(Debug, Clone)]
pub struct Task {
    /// The address at which the stack answers.
    pub listen: SocketAddr,
    /// The TUN device, which has its address, MTU and route already.
    pub tun: String,
    pub mtu: u16,
    options: BTreeMap<String, String>,
    /// On layer `udp`; there are no connections then.
    datagrams: Option<Datagrams>,
    service: Arc<Service>,
}

/// The server's side of a connection.
#[derive(Debug)]
pub enum Service {
    Echo,
    Stream(Stream),
}

/// As [`run`], for a stack with its own event loop: no runtime, one thread.
pub fn run_loop(system: System, stack: impl FnOnce(&Task) -> io::Result<()>) {
    start(system, |spec| {
        if spec.threads != 1 || spec.runtime()? != Runtime::Single {
            return Err(Refusal::Unsupported("more than one thread".into()));
        }
        let task = Task::new(spec)?;
        let mut signals = Signals::new([SIGTERM])?;
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                std::process::exit(0);
            }
        });
        Ok(stack(&task)?)
    });
}

/// Runs `stack` with the task of `argv[1]` until SIGTERM; the whole of a system's `main`.
pub fn run(system: System, stack: impl AsyncFnOnce(Task) -> io::Result<()>) {
    start(system, |spec| {
        let task = Task::new(spec)?;
        let runtime = runtime(spec)?;
        let outcome = runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate())?;
            tokio::select! {
                ended = stack(task) => ended,
                _ = terminate.recv() => Ok(()),
            }
        });
        // Established connections are dropped.
        runtime.shutdown_background();
        Ok(outcome?)
    });
}

fn start(system: System, act: impl FnOnce(&Spec) -> Result<(), Refusal>) {
    let System { name, version, options } = system;
    let workloads = ["crr", "fanout", "rr", "stream"];
    let describe = |_: &Spec| describe(name, version, &[Role::Server], &["tcp", "udp"], &workloads);
    program::run(name, options, describe, |spec| act(spec).map(|()| None));
}

impl Task {
    fn new(spec: &Spec) -> Result<Self, Refusal> {
        if spec.threads == 0 {
            return Err(Refusal::BadSpec("\"threads\" must be above 0".into()));
        }
        let listen = || spec.listen.ok_or_else(|| missing("listen"));
        let (service, datagrams) = match (spec.role, spec.layer.as_str(), spec.workload.as_str()) {
            (Role::Server, "tcp", "rr" | "crr" | "fanout") => (Service::Echo, None),
            (Role::Server, "tcp", "stream") => (Service::Stream(Stream::new(spec)?), None),
            (Role::Server, "udp", "rr") => (Service::Echo, Some(Datagrams::echo(listen()?))),
            (Role::Server, "udp", "stream") => (Service::Echo, Some(Datagrams::count(spec, listen()?)?)),
            _ => return Err(unsupported(spec)),
        };
        // Such a stack cannot fall back to a kernel socket.
        let tun = spec
            .option("tun")
            .ok_or_else(|| Refusal::Unsupported("a path without a TUN device (\"options.tun\")".into()))?;
        let mtu = spec.number("mtu", LEAST_MTU..=65_535)?.ok_or_else(|| missing("options.mtu"))?;
        Ok(Self {
            listen: listen()?,
            tun: tun.into(),
            mtu: mtu as u16,
            options: spec.options.clone(),
            datagrams,
            service: Arc::new(service),
        })
    }

    /// One of the program's own options.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// The server of the datagrams on layer `udp`.
    #[must_use]
    pub fn datagrams(&self) -> Option<Datagrams> {
        self.datagrams.clone()
    }

    /// Runs a stack whose connections are not asynchronous streams.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Prints that the stack accepts connections.
    pub fn ready(&self) {
        program::emit(&Event::Ready { address: self.listen });
    }

    /// Serves the connections of a listener to the task's address: a stream, the peer's address, and its own.
    /// Returns when the stack ends.
    pub async fn serve_all<S: AsyncRead + AsyncWrite + Send + 'static>(
        &self,
        mut listener: impl futures::Stream<Item = (S, SocketAddr, SocketAddr)> + Unpin,
    ) {
        while let Some((stream, _, at)) = listener.next().await {
            if at == self.listen {
                self.serve(stream);
            }
        }
    }

    /// Serves one connection in its own task. A peer that vanishes ends its own connection only.
    pub fn serve<S: AsyncRead + AsyncWrite + Send + 'static>(&self, stream: S) {
        let service = self.service.clone();
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(stream);
            let _ = match &*service {
                Service::Echo => echo(reader, writer).await,
                Service::Stream(stream) => stream.serve(reader, writer).await,
            };
        });
    }
}
