//! `stream` over UDP, both ends: `send` and `recv_from`, a call for each datagram; a task for each of a client's flows.

use crate::client::Target;
use crate::{ready, runtime};
use linerate_contract::datagram::{Datagram, HEADER, LARGEST, Receiver, Report, SMALLEST};
use linerate_contract::program::Refusal;
use linerate_contract::tally::Tally;
use linerate_contract::{Done, ErrorKind, Nanos, Spec, clock, page};
use std::io;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// HELLO and END go out again after this time.
const REPEAT: Duration = Duration::from_millis(50);
/// After an error of the server's socket, such as an ICMP answer to a report, so that none burns a CPU.
const REST: Duration = Duration::from_millis(1);

/// A datagram as it should be: the sequence number is written over its first bytes.
struct Payload(Vec<u8>);

impl Payload {
    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let size = usize::try_from(spec.size).unwrap_or(usize::MAX);
        if !(SMALLEST..=LARGEST).contains(&size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be {SMALLEST} to {LARGEST} bytes")));
        }
        match spec.options.get("direction").map(String::as_str) {
            Some("client-writes") => {}
            Some("client-reads" | "both") => {
                return Err(Refusal::Unsupported("datagrams from the server".into()));
            }
            _ => return Err(Refusal::BadSpec("\"options.direction\" must be client-writes".into())),
        }
        match spec.options.get("mode").map_or("single", String::as_str) {
            "single" => Ok(Self(page(size))),
            mode => {
                Err(Refusal::Unsupported(format!("tokio sends and receives one datagram a call, not {mode}")))
            }
        }
    }
}

/// Serves until SIGTERM.
pub fn serve(spec: &Spec) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let payload = Payload::new(spec)?;
    let runtime = runtime(spec)?;
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let socket = UdpSocket::bind(address).await?;
        ready(socket.local_addr()?);
        tokio::spawn(receive(socket, payload));
        terminate.recv().await;
        Ok(())
    });
    runtime.shutdown_background();
    outcome.map_err(Refusal::Failed)
}

async fn receive(socket: UdpSocket, payload: Payload) {
    let mut receiver = Receiver::new(payload.0);
    let mut buffer = vec![0; LARGEST + 1];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            sleep(REST).await;
            continue;
        };
        if let Some(answer) = receiver.answer(from, &buffer[..length], || clock::now().0) {
            // A client that went away asks for nothing again.
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

pub fn client(spec: &Spec) -> Result<Done, Refusal> {
    let payload = Payload::new(spec)?;
    let target = Target::new(spec)?;
    let limit = match (spec.bytes, spec.duration_ns) {
        (None | Some(0), None) => {
            return Err(Refusal::BadSpec("a stream needs \"bytes\" or \"duration_ns\"".into()));
        }
        (bytes, _) => bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(spec.size)),
    };
    let window = spec.duration_ns.unwrap_or(Nanos(u64::MAX));
    let content = (spec.size as usize - HEADER) as u64;
    runtime(spec)?.block_on(async move {
        let (mut sum, mut sockets) = (Tally::default(), Vec::new());
        for _ in 0..spec.connections {
            match target.greet().await {
                Ok(socket) => sockets.push(socket),
                Err(kind) => sum.fail(kind),
            }
        }
        let (start, cpu) = (clock::now(), clock::process_cpu());
        let mut set = JoinSet::new();
        for socket in sockets {
            let flow = Flow { socket, datagram: payload.0.clone(), limit, until: start + window };
            set.spawn(flow.run(target.timeout));
        }
        while let Some(tally) = set.join_next().await {
            sum.merge(&tally.expect("a panic aborts the process"));
        }
        Ok(sum.done(start, clock::process_cpu().since(cpu), |datagrams, _| datagrams * content))
    })
}

impl Target {
    /// A socket of its own, connected, at whose other end there is a server.
    async fn greet(&self) -> Result<UdpSocket, ErrorKind> {
        let socket = UdpSocket::bind(self.source()).await.map_err(|_| ErrorKind::ConnectFailed)?;
        socket.connect(self.address).await.map_err(|_| ErrorKind::ConnectFailed)?;
        match ask(&socket, Datagram::Hello, self.timeout).await {
            Ok(_) => Ok(socket),
            Err(ErrorKind::Timeout) => Err(ErrorKind::ConnectTimeout),
            Err(ErrorKind::Reset) => Err(ErrorKind::ConnectRefused),
            Err(_) => Err(ErrorKind::ConnectFailed),
        }
    }
}

struct Flow {
    socket: UdpSocket,
    datagram: Vec<u8>,
    limit: u64,
    until: Nanos,
}

impl Flow {
    async fn run(mut self, patience: Duration) -> Tally {
        let mut failed = None;
        let mut sent = 0;
        while sent < self.limit && clock::now() < self.until {
            self.datagram[..HEADER].copy_from_slice(&u64::to_le_bytes(sent));
            if let Err(error) = self.socket.send(&self.datagram).await {
                failed = Some(socket_error(&error));
                break;
            }
            sent += 1;
        }
        let mut tally = Tally::default();
        match ask(&self.socket, Datagram::End { sent }, patience).await {
            Ok(report) => tally.flowed(sent, &report),
            Err(kind) => {
                tally.flowed(sent, &Report::default());
                failed = failed.or(Some(kind));
            }
        }
        if let Some(kind) = failed {
            tally.fail(kind);
        }
        tally
    }
}

/// Sends a control datagram until it is answered: an END by a report, a HELLO by itself.
async fn ask(socket: &UdpSocket, question: Datagram, patience: Duration) -> Result<Report, ErrorKind> {
    let bytes = question.to_bytes();
    let mut buffer = vec![0; LARGEST];
    let exchange = async {
        loop {
            socket.send(&bytes).await.map_err(|e| socket_error(&e))?;
            let answer = async {
                loop {
                    let length = socket.recv(&mut buffer).await.map_err(|e| socket_error(&e))?;
                    match (question, Datagram::parse(&buffer[..length])) {
                        (Datagram::Hello, Some(Datagram::Hello)) => return Ok(Report::default()),
                        (Datagram::End { .. }, Some(Datagram::Report(report))) => return Ok(report),
                        _ => {}
                    }
                }
            };
            if let Ok(answer) = timeout(REPEAT, answer).await {
                return answer;
            }
        }
    };
    timeout(patience, exchange).await.unwrap_or(Err(ErrorKind::Timeout))
}

/// An ICMP answer says that nobody is there any more.
fn socket_error(error: &io::Error) -> ErrorKind {
    if error.kind() == io::ErrorKind::ConnectionRefused { ErrorKind::Reset } else { ErrorKind::Failed }
}
