//! `stream` over UDP, both ends: `send` and `recv_from`, one call per datagram; one task per flow of a
//! client.

use crate::client::gather;
use linerate_contract::datagram::{Datagram, HEADER, LARGEST, Receiver, Report};
use linerate_contract::program::Refusal;
use linerate_contract::tally::Tally;
use linerate_contract::{Done, ErrorKind, Nanos, Spec, Window, clock};
use linerate_sdk::client::Target;
use linerate_sdk::server::{runtime, serve as serve_until_terminated};
use std::io;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// HELLO and END are repeated after this time.
const REPEAT: Duration = Duration::from_millis(50);
/// Wait after an error of the server's socket, such as an ICMP answer to a report, so that it does not use a
/// CPU.
const RETRY: Duration = Duration::from_millis(1);

fn datagram(spec: &Spec) -> Result<Vec<u8>, Refusal> {
    let datagram = linerate_sdk::datagram(spec)?;
    match spec.option("mode").unwrap_or("single") {
        "single" => Ok(datagram),
        mode => {
            let text = format!("mode {mode}: tokio sends and receives one datagram per call");
            Err(Refusal::Unsupported(text))
        }
    }
}

/// Serves until SIGTERM.
pub fn serve(spec: &Spec) -> Result<(), Refusal> {
    let receiver = Receiver::new(datagram(spec)?);
    serve_until_terminated(spec, async |address| {
        let socket = UdpSocket::bind(address).await?;
        let address = socket.local_addr()?;
        tokio::spawn(receive(socket, receiver));
        Ok(address)
    })
}

async fn receive(socket: UdpSocket, mut receiver: Receiver) {
    let mut buffer = vec![0; LARGEST + 1];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            sleep(RETRY).await;
            continue;
        };
        if let Some(answer) = receiver.answer(from, &buffer[..length], || clock::now().0) {
            // A client that has gone needs no answer.
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

pub fn client(spec: &Spec) -> Result<Done, Refusal> {
    let datagram = datagram(spec)?;
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
            match hello(&target).await {
                Ok(socket) => sockets.push(socket),
                Err(kind) => sum.fail(kind),
            }
        }
        let open = Window::open(spec);
        let mut set = JoinSet::new();
        for socket in sockets {
            let flow = Flow { socket, datagram: datagram.clone(), limit, until: open.start() + window };
            set.spawn(flow.run(target.timeout));
        }
        let mut done = gather(set, sum, &open, false).await;
        done.verified *= content;
        Ok(done)
    })
}

/// A connected socket, which has exchanged HELLO with the server.
async fn hello(target: &Target) -> Result<UdpSocket, ErrorKind> {
    let socket = UdpSocket::bind(target.source()).await.map_err(|_| ErrorKind::ConnectFailed)?;
    socket.connect(target.address).await.map_err(|_| ErrorKind::ConnectFailed)?;
    match control(&socket, Datagram::Hello, target.timeout).await {
        Ok(_) => Ok(socket),
        Err(ErrorKind::Timeout) => Err(ErrorKind::ConnectTimeout),
        Err(ErrorKind::Reset) => Err(ErrorKind::ConnectRefused),
        Err(_) => Err(ErrorKind::ConnectFailed),
    }
}

struct Flow {
    socket: UdpSocket,
    datagram: Vec<u8>,
    limit: u64,
    until: Nanos,
}

impl Flow {
    async fn run(mut self, timeout: Duration) -> Tally {
        let (mut failed, mut sent, start) = (None, 0, clock::now());
        while sent < self.limit && clock::now() < self.until {
            self.datagram[..HEADER].copy_from_slice(&u64::to_le_bytes(sent));
            if let Err(error) = self.socket.send(&self.datagram).await {
                failed = Some(socket_error(&error));
                break;
            }
            sent += 1;
        }
        let (mut tally, stopped) = (Tally::default(), clock::now());
        let size = self.datagram.len() as u64;
        let report = control(&self.socket, Datagram::End { sent }, timeout).await;
        let report = report.and_then(|report| {
            let is_possible = report.is_possible(sent, size, clock::now().since(start));
            if is_possible { Ok(report) } else { Err(ErrorKind::Malformed) }
        });
        match report {
            Ok(report) => tally.flowed(sent, stopped, &report),
            Err(kind) => {
                tally.flowed(sent, stopped, &Report::default());
                failed = failed.or(Some(kind));
            }
        }
        if let Some(kind) = failed {
            tally.fail(kind);
        }
        tally
    }
}

/// Repeats a control datagram until its answer: a report to END, WELCOME to HELLO.
async fn control(socket: &UdpSocket, datagram: Datagram, limit: Duration) -> Result<Report, ErrorKind> {
    let bytes = datagram.to_bytes();
    let mut buffer = vec![0; LARGEST];
    let exchange = async {
        loop {
            socket.send(&bytes).await.map_err(|e| socket_error(&e))?;
            let answer = async {
                loop {
                    let length = socket.recv(&mut buffer).await.map_err(|e| socket_error(&e))?;
                    match (datagram, Datagram::parse(&buffer[..length])) {
                        (Datagram::Hello, Some(Datagram::Welcome)) => return Ok(Report::default()),
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
    timeout(limit, exchange).await.unwrap_or(Err(ErrorKind::Timeout))
}

/// An ICMP answer means that the server has gone.
fn socket_error(error: &io::Error) -> ErrorKind {
    if error.kind() == io::ErrorKind::ConnectionRefused { ErrorKind::Reset } else { ErrorKind::Failed }
}
