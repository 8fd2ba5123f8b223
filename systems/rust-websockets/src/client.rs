//! The client: connects all, opens the window, and has a task for each connection.

use crate::{Content, Library, Number, Socket, number, tls};
use bytes::Bytes;
use linerate_contract::program::Refusal;
use linerate_contract::tally::{Tally, connect_error};
use linerate_contract::{Done, ErrorKind, Nanos, Spec, clock, page};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::spawn_local;

/// A connection that stands still is noticed at most an eighth of the timeout late.
const LOOKS: u32 = 8;
const LARGEST_MESSAGE: u64 = 65_536;

pub(crate) async fn run<L: Library>(spec: Spec) -> Result<Done, Refusal> {
    let bad = |text: &str| Refusal::BadSpec(text.into());
    let to = spec.connect.ok_or_else(|| bad("\"connect\" is missing"))?;
    let is_stream = spec.workload == "stream";
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
            let open = async |turn| L::connect(dial(&task.spec, turn).await?, to.to_string()).await;
            Ok(drive(&task, open, None).await)
        }
        Some((connector, name)) => {
            let (host, told) = (
                format!("{}:{}", task.spec.tls.as_ref().map_or("", |tls| &tls.name), to.port()),
                Cell::new(None),
            );
            let open = async |turn| {
                let stream = dial(&task.spec, turn).await?;
                let stream =
                    connector.connect(name.clone(), stream).await.map_err(|_| ErrorKind::TlsFailed)?;
                told.set(Some(tls::describe(stream.get_ref().1)));
                L::connect(stream, host.clone()).await
            };
            Ok(drive(&task, open, Some(&told)).await)
        }
    }
}

/// What all connections share.
struct Task {
    spec: Spec,
    transfers: u64,
    client_writes: bool,
    content: Content,
    message: Bytes,
    left: Cell<u64>,
    until: Cell<Nanos>,
}

impl Task {
    fn new(spec: Spec) -> Result<Self, Refusal> {
        let transfers =
            spec.options.get("transfers").map_or(Ok(1), |text| text.parse()).ok().filter(|n| *n > 0);
        let longest = (spec.size as usize).max(super::PERIOD);
        Ok(Self {
            transfers: transfers
                .ok_or_else(|| Refusal::BadSpec("\"options.transfers\" must be a number above 0".into()))?,
            client_writes: spec
                .options
                .get("direction")
                .is_some_and(|direction| direction == "client-writes"),
            content: Content::new(longest),
            message: page(if spec.workload == "rr" { spec.size as usize } else { 0 }).into(),
            left: Cell::new(spec.operations.unwrap_or(u64::MAX)),
            until: Cell::new(Nanos(u64::MAX)),
            spec,
        })
    }

    /// Takes one operation of `rr` out of the budget; false if none is left, or no time.
    fn begin(&self, now: Nanos) -> bool {
        let left = self.left.get();
        if left == 0 || now >= self.until.get() {
            return false;
        }
        self.left.set(left - 1);
        true
    }

    async fn rr(
        &self,
        socket: &mut impl Socket,
        tally: &mut Tally,
        moved: &Cell<u64>,
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
                        if received > 0 && kind == ErrorKind::EmptyReply {
                            ErrorKind::Truncated
                        } else {
                            kind
                        }
                    })?;
            }
            now = clock::now();
            moved.set(moved.get() + 1);
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
        moved: &Cell<u64>,
    ) -> Result<(), ErrorKind> {
        let (bytes, size) = (self.spec.bytes.unwrap_or_default(), self.spec.size);
        let began = clock::now();
        socket.send(number(bytes)).await?;
        let (mut at, mut good, mut count) = (0, 0, Number::default());
        if self.client_writes {
            for at in (0..bytes).step_by(size as usize) {
                let piece = self.content.piece(at, size.min(bytes - at) as usize);
                socket.send(Bytes::from_static(piece)).await?;
                moved.set(moved.get() + 1);
            }
            while count.value().is_none() {
                socket.receive(|bytes| _ = count.take(bytes)).await?;
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
                .map_err(
                    |kind| if at > 0 && kind == ErrorKind::EmptyReply { ErrorKind::Truncated } else { kind },
                )?;
            moved.set(moved.get() + 1);
        }
        tally.transferred(began, clock::now(), good.div_ceil(size), good);
        if good != bytes {
            tally.fail(ErrorKind::WrongContent);
        }
        Ok(())
    }

    /// One connection's part.
    async fn work(&self, socket: &mut impl Socket) -> Tally {
        let (mut tally, moved) = (Tally::default(), Cell::new(0));
        let all = async {
            if self.spec.workload == "rr" {
                return self.rr(socket, &mut tally, &moved).await;
            }
            for _ in 0..self.transfers {
                self.transfer(socket, &mut tally, &moved).await?;
            }
            Ok(())
        };
        let ended = tokio::select! {
            ended = all => ended,
            () = stands_still(&moved, self.timeout()) => Err(ErrorKind::Timeout),
        };
        match ended {
            Ok(()) => drop(tokio::time::timeout(self.timeout(), socket.close()).await),
            Err(kind) => tally.fail(kind),
        }
        tally
    }

    fn timeout(&self) -> Duration {
        Duration::from_nanos(self.spec.timeout_ns.0)
    }
}

/// Connects one after another, opens the window, and adds up.
async fn drive<K: Socket + 'static>(
    task: &Rc<Task>,
    open: impl AsyncFn(usize) -> Result<K, ErrorKind>,
    tls: Option<&Cell<Option<String>>>,
) -> Done {
    let (mut sockets, mut sum) = (Vec::new(), Tally::default());
    for turn in 0..task.spec.connections as usize {
        match tokio::time::timeout(task.timeout(), open(turn)).await.unwrap_or(Err(ErrorKind::ConnectTimeout))
        {
            Ok(socket) => sockets.push(socket),
            Err(kind) => sum.fail(kind),
        }
    }
    let (start, cpu) = (clock::now(), clock::process_cpu());
    task.until.set(
        task.spec.duration_ns.map_or(Nanos(u64::MAX), |duration| Nanos(start.0.saturating_add(duration.0))),
    );
    let each = |mut socket: K| {
        let task = Rc::clone(task);
        spawn_local(async move { task.work(&mut socket).await })
    };
    let tasks: Vec<_> = sockets.into_iter().map(each).collect();
    for each in tasks {
        // A panic of one ends the process (`panic = "abort"`), so each has its tally.
        let Ok(tally) = each.await else { continue };
        sum.merge(&tally);
    }
    let is_rr = task.spec.workload == "rr";
    let verified = |operations, bytes| if is_rr { operations } else { bytes };
    Done { tls: tls.and_then(Cell::take), ..sum.done(start, clock::process_cpu().since(cpu), verified) }
}

async fn dial(spec: &Spec, turn: usize) -> Result<TcpStream, ErrorKind> {
    let to = spec.connect.unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
    let dialed = async {
        let socket = if to.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() }?;
        socket.set_nodelay(true)?;
        if !spec.sources.is_empty() {
            socket.bind((spec.sources[turn % spec.sources.len()], 0).into())?;
        }
        socket.connect(to).await
    };
    dialed.await.map_err(|error| connect_error(&error))
}

/// Returns when nothing has moved for the timeout: one timer for a connection, not one for each operation.
async fn stands_still(moved: &Cell<u64>, timeout: Duration) {
    let (mut seen, mut still) = (moved.get(), 0);
    while still <= LOOKS {
        tokio::time::sleep(timeout / LOOKS).await;
        still = if moved.get() == seen { still + 1 } else { 0 };
        seen = moved.get();
    }
}
