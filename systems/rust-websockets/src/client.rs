//! The client: opens all connections, then the window, and runs one task per connection.

use crate::{Library, Number, Socket, number, tls};
use bytes::Bytes;
use linerate_contract::program::Refusal;
use linerate_contract::tally::Tally;
use linerate_contract::{Direction, Done, ErrorKind, Nanos, Spec, Window, Workload, clock, page};
use linerate_sdk::client::{Target, watched};
use linerate_sdk::content::{Content, PERIOD};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::task::spawn_local;

const LARGEST_MESSAGE: u64 = 65_536;

pub(crate) async fn run<L: Library>(spec: Spec) -> Result<Done, Refusal> {
    let bad = |text: &str| Refusal::BadSpec(text.into());
    let is_stream = spec.workload == Workload::Stream;
    if is_stream && spec.bytes.is_none_or(|bytes| bytes == 0) {
        return Err(bad("\"bytes\" is missing"));
    }
    if !is_stream && !(1..=LARGEST_MESSAGE).contains(&spec.size) {
        return Err(bad("\"size\" must be from 1 to 65536 bytes"));
    }
    if !is_stream && spec.operations.is_none() && spec.duration_ns.is_none() {
        return Err(bad("\"operations\" or \"duration_ns\" is missing"));
    }
    let secured = match (&spec.tls, spec.layer.as_str()) {
        (Some(keys), "wss") => Some(tls::connector(keys).map_err(Refusal::BadSpec)?),
        (None, "wss") => return Err(bad("a client of wss needs \"tls\"")),
        _ => None,
    };
    let task = Rc::new(Task::new(spec)?);
    match secured {
        None => {
            let open = async || {
                let socket = task.target.connect().await?;
                L::connect(socket, task.target.address.to_string()).await
            };
            Ok(drive(&task, open, None).await)
        }
        Some((connector, name)) => {
            let name_text = task.spec.tls.as_ref().map_or("", |tls| &tls.name);
            let host = format!("{name_text}:{}", task.target.address.port());
            let described = Cell::new(None);
            let open = async || {
                let stream = task.target.connect().await?;
                let stream =
                    connector.connect(name.clone(), stream).await.map_err(|_| ErrorKind::TlsFailed)?;
                described.set(Some(tls::describe(stream.get_ref().1)));
                L::connect(stream, host.clone()).await
            };
            Ok(drive(&task, open, Some(&described)).await)
        }
    }
}

/// The state that all connections share.
struct Task {
    spec: Spec,
    target: Target,
    transfers: u64,
    client_writes: bool,
    content: Content,
    message: Bytes,
    left: Cell<u64>,
    /// Open when all connections are established.
    window: OnceCell<Window>,
}

impl Task {
    fn new(spec: Spec) -> Result<Self, Refusal> {
        let is_stream = spec.workload == Workload::Stream;
        Ok(Self {
            target: Target::new(&spec)?,
            transfers: spec.transfers()?,
            client_writes: is_stream && spec.direction()? == Direction::ClientWrites,
            content: Content::new((spec.size as usize).max(PERIOD)),
            message: page(if spec.workload == Workload::Rr { spec.size as usize } else { 0 }).into(),
            left: Cell::new(spec.operations.unwrap_or(u64::MAX)),
            window: OnceCell::new(),
            spec,
        })
    }

    fn window(&self) -> &Window {
        self.window.get_or_init(|| Window::open(&self.spec))
    }

    /// Takes one operation of `rr` from the budget; false if no operation or no time is left.
    fn begin(&self, now: Nanos) -> bool {
        let left = self.left.get();
        if self.window().is_over(now) || left == 0 {
            return false;
        }
        self.left.set(left - 1);
        true
    }

    async fn rr(
        &self,
        socket: &mut impl Socket,
        tally: &mut Tally,
        progress: &AtomicU64,
    ) -> Result<(), ErrorKind> {
        let mut now = clock::now();
        while self.begin(now) {
            let began = now;
            socket.send(self.message.clone()).await?;
            let (mut received, mut same) = (0, true);
            while received < self.message.len() {
                socket
                    .receive(|bytes| {
                        same &= self.message[received..].starts_with(bytes);
                        received += bytes.len();
                    })
                    .await
                    .map_err(|kind| {
                        if received > 0 && kind == ErrorKind::EmptyResponse {
                            ErrorKind::Truncated
                        } else {
                            kind
                        }
                    })?;
            }
            now = clock::now();
            progress.fetch_add(1, Relaxed);
            if same {
                tally.succeed(began, now, received as u64);
            } else {
                tally.fail(ErrorKind::WrongContent);
            }
        }
        Ok(())
    }

    async fn transfer(
        &self,
        socket: &mut impl Socket,
        tally: &mut Tally,
        progress: &AtomicU64,
    ) -> Result<(), ErrorKind> {
        let (bytes, size) = (self.spec.bytes.unwrap_or_default(), self.spec.size);
        let began = clock::now();
        socket.send(number(bytes)).await?;
        let (mut at, mut good, mut count) = (0, 0, Number::default());
        if self.client_writes {
            for at in (0..bytes).step_by(size as usize) {
                let piece = self.content.at(at, size.min(bytes - at) as usize);
                socket.send(Bytes::from_static(piece)).await?;
                progress.fetch_add(1, Relaxed);
            }
            while count.value().is_none() {
                socket.receive(|bytes| _ = count.take(bytes)).await.map_err(truncated)?;
            }
            good = count.value().unwrap_or_default();
        }
        while !self.client_writes && at < bytes {
            socket
                .receive(|part| {
                    good += self.content.good(at, part);
                    at += part.len() as u64;
                })
                .await
                .map_err(truncated)?;
            progress.fetch_add(1, Relaxed);
        }
        tally.transferred(began, clock::now(), good.div_ceil(size), good);
        if good != bytes {
            tally.fail(ErrorKind::WrongContent);
        }
        Ok(())
    }

    /// Whether a transfer follows the first `made` of a connection: one of the spec's number, or with a
    /// duration any until the time is over.
    fn another(&self, made: u64) -> bool {
        match self.spec.duration_ns {
            Some(_) => made == 0 || !self.window().is_over(clock::now()),
            None => made < self.transfers,
        }
    }

    /// One connection's operations or transfers.
    async fn work(&self, socket: &mut impl Socket) -> Tally {
        let (mut tally, progress) = (self.window().tally(), AtomicU64::new(0));
        let all = async {
            if self.spec.workload == Workload::Rr {
                return self.rr(socket, &mut tally, &progress).await;
            }
            let mut made = 0;
            while self.another(made) {
                made += 1;
                self.transfer(socket, &mut tally, &progress).await?;
            }
            Ok(())
        };
        let timeout = self.target.timeout;
        match watched(&progress, timeout, all).await {
            Ok(()) => drop(tokio::time::timeout(timeout, socket.close()).await),
            Err(kind) => tally.fail(kind),
        }
        tally
    }
}

/// Opens all connections one after the other, then the window, and merges the tallies.
async fn drive<K: Socket + 'static>(
    task: &Rc<Task>,
    open: impl AsyncFn() -> Result<K, ErrorKind>,
    tls: Option<&Cell<Option<String>>>,
) -> Done {
    let (mut sockets, mut sum) = (Vec::new(), Tally::default());
    for _ in 0..task.spec.connections {
        let opened = tokio::time::timeout(task.target.timeout, open()).await;
        match opened.unwrap_or(Err(ErrorKind::ConnectTimeout)) {
            Ok(socket) => sockets.push(socket),
            Err(kind) => sum.fail(kind),
        }
    }
    let window = task.window();
    let each = |mut socket: K| {
        let task = Rc::clone(task);
        spawn_local(async move { task.work(&mut socket).await })
    };
    let tasks: Vec<_> = sockets.into_iter().map(each).collect();
    for each in tasks {
        // A panic ends the process (`panic = "abort"`), so each task has a tally.
        let Ok(tally) = each.await else { continue };
        sum.merge(&tally);
    }
    let is_rr = task.spec.workload == Workload::Rr;
    let verified = |operations, bytes| if is_rr { operations } else { bytes };
    Done { tls: tls.and_then(Cell::take), ..window.done(&sum, verified) }
}

/// In a stream an early end is `truncated`, wherever it is.
fn truncated(kind: ErrorKind) -> ErrorKind {
    if kind == ErrorKind::EmptyResponse { ErrorKind::Truncated } else { kind }
}
