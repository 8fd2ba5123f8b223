//! What systems share that are a TCP/IP stack behind a TUN device: they differ in the stack alone.
//!
//! ```text
//! spec -> Task -> tokio runtime (options.runtime) -> the system's own code: device, stack, accept -> Task::serve -> stream.rs
//!                                                                          or datagrams of the stack -> datagrams.rs
//! ```
//!
//! A connection is whatever reads and writes asynchronously. It is served as systems/tokio serves a kernel's socket, so that the
//! difference between two rows is the stack.

mod datagrams;
pub mod device;
mod stream;

pub use datagrams::Datagrams;
use futures::{Stream, StreamExt};
use linerate_contract::program::{self, Refusal};
use linerate_contract::{Describe, Event, Role, Spec};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
pub use stream::Setting;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Input that is read at once, as in every echo server here.
const ECHO_BUFFER: usize = 64 << 10;
/// The least that IPv4 asks of a link that carries TCP with options (RFC 791).
const LEAST_MTU: u16 = 576;

/// The stack under test, as `describe` tells it.
#[derive(Debug, Clone, Copy)]
pub struct System {
    pub name: &'static str,
    pub version: &'static str,
    /// Option names of its own, beside those of the contract.
    pub options: &'static [&'static str],
}

/// What a stack needs to know.
#[derive(Debug, Clone)]
pub struct Task {
    /// The address that the stack answers at.
    pub listen: SocketAddr,
    /// The TUN device, which has its address, MTU and route already.
    pub tun: String,
    pub mtu: u16,
    options: BTreeMap<String, String>,
    /// The layer is `udp`; no connection is taken then.
    datagrams: Option<Datagrams>,
    work: Arc<Work>,
}

/// What is done with a connection.
#[derive(Debug)]
pub enum Work {
    Echo,
    Stream(Setting),
}

/// As [`run`], for a stack with an event loop of its own: no runtime, one thread.
pub fn run_loop(system: System, stack: impl FnOnce(&Task) -> io::Result<()>) {
    answer(system, |spec| {
        let is_single = spec.options.get("runtime").is_none_or(|runtime| runtime == "single");
        if spec.threads != 1 || !is_single {
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

/// Runs `stack` with what the only argument says until SIGTERM, or tells about it; the whole of a system's `main`.
pub fn run<S, F>(system: System, stack: S)
where
    S: FnOnce(Task) -> F,
    F: Future<Output = io::Result<()>>,
{
    answer(system, |spec| serve(spec, stack));
}

fn answer(system: System, act: impl FnOnce(&Spec) -> Result<(), Refusal>) {
    program::run(system.name, system.options, |_| describe(system), |spec| act(spec).map(|()| None));
}

fn serve<S, F>(spec: &Spec, stack: S) -> Result<(), Refusal>
where
    S: FnOnce(Task) -> F,
    F: Future<Output = io::Result<()>>,
{
    let task = Task::new(spec)?;
    let runtime = runtime(spec)?;
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            ended = stack(task) => ended,
            _ = terminate.recv() => Ok(()),
        }
    });
    // Connections that stand are not waited for.
    runtime.shutdown_background();
    Ok(outcome?)
}

fn describe(system: System) -> Describe {
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    Describe {
        name: system.name.into(),
        version: system.version.into(),
        roles: vec![Role::Server],
        layers: names(&["tcp", "udp"]),
        workloads: names(&["churn", "fanout", "rr", "stream"]),
    }
}

/// `single`: everything on one thread. `multi`: a pool of `threads` that steal work from each other.
fn runtime(spec: &Spec) -> Result<Runtime, Refusal> {
    let mut builder = match spec.options.get("runtime").map(String::as_str) {
        None | Some("single") if spec.threads == 1 => Builder::new_current_thread(),
        None | Some("single") => {
            return Err(Refusal::Unsupported("several threads on a single-threaded runtime".into()));
        }
        Some("multi") => Builder::new_multi_thread(),
        Some(other) => {
            return Err(Refusal::BadSpec(format!(
                "\"options.runtime\" must be single or multi, not {other}"
            )));
        }
    };
    Ok(builder.worker_threads(spec.threads as usize).enable_all().build()?)
}

impl Task {
    fn new(spec: &Spec) -> Result<Self, Refusal> {
        if spec.threads == 0 {
            return Err(Refusal::BadSpec("\"threads\" must be above 0".into()));
        }
        let (work, datagrams) = match (spec.role, spec.layer.as_str(), spec.workload.as_str()) {
            (Role::Server, "tcp", "rr" | "churn" | "fanout") => (Work::Echo, None),
            (Role::Server, "tcp", "stream") => {
                (Work::Stream(Setting::new(spec).map_err(Refusal::BadSpec)?), None)
            }
            (Role::Server, "udp", "rr") => (Work::Echo, Some(Datagrams::echo())),
            (Role::Server, "udp", "stream") => (Work::Echo, Some(Datagrams::count(spec)?)),
            (role, layer, workload) => {
                return Err(Refusal::Unsupported(format!(
                    "{role} of layer {layer:?} and workload {workload:?}"
                )));
            }
        };
        let missing = |what: &str| Refusal::BadSpec(format!("{what} is missing"));
        // A stack of one's own needs a device of one's own: there is no kernel's socket to fall back to.
        let tun = spec.options.get("tun").cloned();
        let tun =
            tun.ok_or_else(|| Refusal::Unsupported("a path without a TUN device (\"options.tun\")".into()))?;
        let mtu = spec.options.get("mtu").ok_or_else(|| missing("\"options.mtu\""))?;
        let mtu = mtu.parse().ok().filter(|mtu| *mtu >= LEAST_MTU);
        let mtu =
            mtu.ok_or_else(|| Refusal::BadSpec(format!("\"options.mtu\" must be {LEAST_MTU} to 65535")))?;
        let listen = spec.listen.ok_or_else(|| missing("\"listen\""))?;
        Ok(Self { listen, tun, mtu, options: spec.options.clone(), datagrams, work: Arc::new(work) })
    }

    /// What a variant says to its program alone.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// What serves the datagrams, if these and no connections are what is wanted.
    #[must_use]
    pub fn datagrams(&self) -> Option<Datagrams> {
        self.datagrams.clone()
    }

    /// For a stack whose connections are no asynchronous streams.
    #[must_use]
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// Says that connections are taken from now on.
    pub fn ready(&self) {
        program::emit(&Event::Ready { address: self.listen });
    }

    /// Serves what a listener takes in at the task's address: a stream with the peer's address and its own. Ends with the stack.
    pub async fn serve_all<S: AsyncRead + AsyncWrite + Send + 'static>(
        &self,
        mut listener: impl Stream<Item = (S, SocketAddr, SocketAddr)> + Unpin,
    ) {
        while let Some((stream, _, at)) = listener.next().await {
            if at == self.listen {
                self.serve(stream);
            }
        }
    }

    /// Serves one connection in a task of its own. A peer that vanishes ends its connection and nothing else.
    pub fn serve<S: AsyncRead + AsyncWrite + Send + 'static>(&self, stream: S) {
        let work = self.work.clone();
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(stream);
            let _ = match &*work {
                Work::Echo => echo(reader, writer).await,
                Work::Stream(setting) => setting.serve(reader, writer).await,
            };
        });
    }
}

async fn echo<S: AsyncRead + AsyncWrite>(
    mut reader: ReadHalf<S>,
    mut writer: WriteHalf<S>,
) -> io::Result<()> {
    let mut buffer = vec![0; ECHO_BUFFER];
    loop {
        let n = reader.read(&mut buffer).await?;
        if n == 0 {
            // Some of these stacks forget a connection that is dropped without it.
            return writer.shutdown().await;
        }
        writer.write_all(&buffer[..n]).await?;
    }
}
