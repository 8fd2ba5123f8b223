//! Servers of datagrams that are hostile to a client.

use crate::Row;
use crate::common::{Engine, local};
use crate::subject::{client, fails, result};
use linerate_contract::datagram::{Datagram, Report};
use linerate_contract::{ErrorKind, Nanos, Spec, Tls};
use nix::sys::signal::Signal;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use ErrorKind::{ConnectTimeout, Malformed, Timeout, WrongContent, WrongLength};

/// The datagrams that a server sends for one.
type Response = fn(&[u8]) -> Vec<Vec<u8>>;

/// Layer, workload, name, responses, and the kinds of failure that are right.
const SERVERS: &[(&str, &str, &str, Response, &[ErrorKind])] = &[
    ("udp", "stream", "never answers", |_| vec![], &[ConnectTimeout]),
    ("udp", "stream", "returns HELLO", |bytes| vec![bytes.to_vec()], &[ConnectTimeout]),
    ("udp", "stream", "answers with garbage", |_| garbage(), &[ConnectTimeout]),
    ("udp", "stream", "never reports", |bytes| welcome(bytes, None), &[Timeout]),
    ("udp", "stream", "reports more than was sent", |bytes| welcome(bytes, Some(TOO_MANY)), &[Malformed]),
    ("udp", "stream", "reports a flow of 584 years", |bytes| welcome(bytes, Some(TOO_LONG)), &[Malformed]),
    ("udp", "stream", "reports 2^64-1 damaged ones", |bytes| welcome(bytes, Some(DAMAGED)), &[Malformed]),
    ("udp", "rr", "never answers", |_| vec![], &[Timeout]),
    ("udp", "rr", "answers with garbage", |_| garbage(), &[WrongLength, WrongContent]),
    ("udp", "rr", "answers with more", |bytes| vec![[bytes, &[0]].concat()], &[WrongLength]),
    ("udp", "rr", "answers earlier than it was asked", |bytes| vec![numbered(bytes, 9)], &[WrongContent]),
    ("kcp", "stream", "never answers", |_| vec![], &[ConnectTimeout]),
    ("kcp", "stream", "answers with garbage", |_| garbage(), &[ConnectTimeout]),
    ("kcp", "stream", "only chatters", |bytes| vec![chatter(bytes)], &[Timeout]),
    ("kcp", "stream", "acknowledges all and never counts", |bytes| vec![acknowledge(bytes)], &[Timeout]),
    ("kcp", "stream", "counts before the end", |bytes| vec![push(bytes, 0, 0, &[1; 8])], &[Malformed]),
    ("kcp", "stream", "scatters large segments", scatter, &[Timeout]),
];

const TOO_MANY: Report = report(u64::MAX, 0, 0);
const TOO_LONG: Report = report(1, 0, u64::MAX);
const DAMAGED: Report = report(1, u64::MAX, 1);

const fn report(received: u64, damaged: u64, last_ns: u64) -> Report {
    let bytes = received.saturating_mul(1_000);
    Report { received, bytes, reordered: 0, duplicates: 0, damaged, first_ns: 0, last_ns }
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (layer, workload, what, response, kinds) in SERVERS {
        let run = move || fails(&spec(layer, workload, serve(*response)), kinds);
        rows.push(Row::new(format!("{layer} {workload}: a server that {what}"), run));
    }
    rows.push(Row::new("udp rr: a server that answers thrice".into(), || {
        let address = serve(|bytes| vec![bytes.to_vec(); 3]);
        let done = result(&Spec { operations: Some(100), ..spec("udp", "rr", address) });
        assert_eq!((done.operations, done.errors.total()), (100, 0), "{:?}", done.errors);
    }));
    rows.push(Row::new(
        "kcp stream: the first signal ends a client of a server that only chatters".into(),
        || {
            let address = serve(|bytes| vec![chatter(bytes)]);
            let long = Some(Nanos(60_000_000_000));
            let timeout_ns = Nanos(60_000_000_000);
            let mut engine =
                Engine::start(&Spec { duration_ns: long, timeout_ns, ..spec("kcp", "stream", address) });
            std::thread::sleep(Duration::from_millis(300));
            engine.signal(Signal::SIGTERM);
            let start = Instant::now();
            engine.wait();
            assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        },
    ));
    rows
}

fn spec(layer: &str, workload: &str, address: SocketAddr) -> Spec {
    let mut spec = client(layer, workload, address, &Tls::default());
    if workload == "stream" {
        (spec.operations, spec.duration_ns) = (None, Some(Nanos(100_000_000)));
        (spec.rate, spec.bytes) = (None, (layer == "udp").then_some(10_000));
    }
    spec
}

fn serve(response: Response) -> SocketAddr {
    let socket = UdpSocket::bind(local()).unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        // A client that has ended is an error of the next call, and no reason to end.
        loop {
            if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                response(&buffer[..length]).iter().for_each(|bytes| drop(socket.send_to(bytes, from)));
            }
        }
    });
    address
}

fn garbage() -> Vec<Vec<u8>> {
    [0, 1, 8, 16, 24, 64, 1_472].map(|length| vec![0xa5; length]).into()
}

fn numbered(bytes: &[u8], number: u64) -> Vec<u8> {
    [&number.to_le_bytes(), &bytes[8..]].concat()
}

fn welcome(bytes: &[u8], report: Option<Report>) -> Vec<Vec<u8>> {
    match Datagram::parse(bytes) {
        Some(Datagram::Hello) => vec![Datagram::Welcome.to_bytes()],
        Some(Datagram::End { .. }) => {
            report.map(|report| Datagram::Report(report).to_bytes()).into_iter().collect()
        }
        _ => vec![],
    }
}

/// A segment of KCP in the conversation of `asked`.
fn segment(asked: &[u8], command: u8, number: u32, una: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 24];
    bytes[..4].copy_from_slice(&asked[..4]);
    bytes[4] = command;
    bytes[6..8].copy_from_slice(&1_024_u16.to_le_bytes());
    bytes[12..16].copy_from_slice(&number.to_le_bytes());
    bytes[16..20].copy_from_slice(&una.to_le_bytes());
    bytes[20..24].copy_from_slice(&(data.len() as u32).to_le_bytes());
    [&bytes, data].concat()
}

fn push(asked: &[u8], number: u32, una: u32, data: &[u8]) -> Vec<u8> {
    segment(asked, 81, number, una, data)
}

/// The size of the window, which acknowledges nothing.
fn chatter(asked: &[u8]) -> Vec<u8> {
    segment(asked, 84, 0, 0, &[])
}

fn acknowledge(asked: &[u8]) -> Vec<u8> {
    segment(asked, 84, 0, u32::MAX / 4, &[])
}

fn scatter(asked: &[u8]) -> Vec<Vec<u8>> {
    let lengths = [1_300, 60_000].into_iter().cycle();
    (1..100).zip(lengths).map(|(number, length)| push(asked, 10 * number, 0, &vec![0; length])).collect()
}
