//! HTTP/3: the engine against itself, and against aioquic, as far as it is installed.

use crate::common::{Engine, LONG, dead_port, good_certificates, local, server};
use crate::h2::{assert_a_wrong_response_fails_its_stream_alone, assert_good, h2_client};
use linerate_contract::{Done, ErrorKind, Expect, Layer, Nanos, Request, Spec, Tls};
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) fn h3_server(tls: &Tls, size: usize) -> Spec {
    Spec { layer: Layer::H3, tls: Some(tls.clone()), ..server(size) }
}

pub(crate) fn h3_client(tls: &Tls, address: SocketAddr, size: usize, operations: u64, streams: u32) -> Spec {
    Spec { tls: Some(tls.clone()), ..h2_client("h3", address, size, operations, streams) }
}

#[test]
fn exactly_the_requested_operations_run_and_all_are_compared() {
    let (own, trust) = good_certificates();
    for size in [0, 100, 4_096, 300_000] {
        let mut server = h3_server(&own, size);
        server.threads = 2;
        let (_server, address) = Engine::serving(&server);
        for (connections, threads, streams, operations) in
            [(1, 1, 1, 1), (1, 1, 10, 500), (3, 2, 7, 501), (10, 1, 100, 2_000), (4, 1, 3, 5)]
        {
            let operations = if size > 10_000 { operations / 10 + 1 } else { operations };
            let mut spec = h3_client(&trust, address, size, operations, streams);
            (spec.connections, spec.threads) = (connections, threads);
            let done = Engine::start(&spec).done();
            assert_good(&done, operations, size as u64);
            assert!(done.tls.unwrap().starts_with("TLSv1.3 TLS_AES_128_GCM_SHA256 rustls"));
            let most = done.streams.unwrap().most;
            assert!((1..=streams).contains(&most), "{most} of {streams}");
        }
    }
}

#[test]
fn every_way_of_datagrams_and_every_congestion_control_has_the_same_responses() {
    let (own, trust) = good_certificates();
    for (mode, congestion) in [("single", "reno"), ("batch", "bbr"), ("gso", "cubic")] {
        let set = |mut spec: Spec| {
            spec.set_option("mode", mode);
            spec.set_option("congestion", congestion);
            spec
        };
        let (_server, address) = Engine::serving(&set(h3_server(&own, 20_000)));
        let done = Engine::start(&set(h3_client(&trust, address, 20_000, 200, 8))).done();
        assert_good(&done, 200, 20_000);
    }
}

#[test]
fn requests_that_vary_are_sent_over_http_2_and_3_with_bodies_of_their_own_length() {
    let (own, trust) = good_certificates();
    for layer in [Layer::H2c, Layer::H2, Layer::H3] {
        let tls = (layer != Layer::H2c).then(|| own.clone());
        let (_server, address) = Engine::serving(&Spec { layer, tls, ..h3_server(&own, 100) });
        let mut spec = h2_client(layer.as_str(), address, 100, 300, 5);
        (spec.tls, spec.connections, spec.threads) = ((layer != Layer::H2c).then(|| trust.clone()), 2, 2);
        let headers = vec!["Id: {seq}".into()];
        spec.request = Some(Request { headers: headers.clone(), ..Request::default() });
        spec.path = Some("/items/{seq}?n={rand:1:1000}".into());
        assert_good(&Engine::start(&spec).done(), 300, 100);
        // What is posted has another length than its template; the server answers 400 to a good request.
        let method = Some("POST".into());
        spec.request =
            Some(Request { method, headers, body: "{seq} ".repeat(2_000).into(), ..Request::default() });
        spec.expect = Some(Expect { status: Some(400), bytes: None, crc32: None, every: 1 });
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (300, 0), "{layer}: {:?}", done.causes);
    }
}

#[test]
fn requests_that_are_due_are_sent_on_connections_in_turn() {
    let (own, trust) = good_certificates();
    let (_server, address) = Engine::serving(&h3_server(&own, 100));
    let mut spec = h3_client(&trust, address, 100, 1, 10);
    (spec.connections, spec.operations, spec.rate) = (3, None, Some(500.0));
    spec.duration_ns = Some(Nanos(600_000_000));
    let done = Engine::start(&spec).done();
    let due = done.operations + done.in_flight + done.schedule.as_ref().unwrap().unsent;
    assert_eq!((due, done.errors.total()), (300, 0), "{:?}", done.errors);
    assert!(done.operations > 0);
}

#[test]
fn a_body_is_sent_and_a_wrong_response_fails_its_stream_alone() {
    let (own, trust) = good_certificates();
    let (_server, address) = Engine::serving(&h3_server(&own, 10));
    assert_a_wrong_response_fails_its_stream_alone(h3_client(&trust, address, 10, 50, 4));
}

#[test]
fn a_closed_port_a_silent_one_and_another_certificate_have_their_errors() {
    let (own, trust) = good_certificates();
    let says_nothing = UdpSocket::bind(local()).unwrap();
    let silent = says_nothing.local_addr().unwrap();
    let failed = |address: SocketAddr, trust: &Tls| -> Done {
        let mut spec = h3_client(trust, address, 10, 2, 2);
        spec.connections = 1;
        if address == silent {
            spec.timeout_ns = Nanos(400_000_000);
        }
        Engine::start(&spec).done()
    };
    let done = failed(dead_port(), &trust);
    assert_eq!(done.errors.0.get(&ErrorKind::ConnectRefused), Some(&2), "{:?}", done.errors);
    let done = failed(silent, &trust);
    assert_eq!(done.errors.0.get(&ErrorKind::ConnectTimeout), Some(&2), "{:?}", done.errors);
    let (_server, address) = Engine::serving(&h3_server(&own, 10));
    let (_, stranger) = good_certificates();
    let done = failed(address, &stranger);
    assert_eq!(done.errors.0.get(&ErrorKind::TlsFailed), Some(&2), "{:?}", done.errors);
}

#[test]
fn a_server_that_disappears_fails_what_is_under_way_within_the_timeout() {
    let (own, trust) = good_certificates();
    let (server, address) = Engine::serving(&h3_server(&own, 10));
    let mut spec = h3_client(&trust, address, 10, 1, 4);
    (spec.connections, spec.operations, spec.duration_ns) = (2, None, Some(LONG));
    (spec.timeout_ns, spec.sample_ns) = (Nanos(500_000_000), Some(Nanos(50_000_000)));
    let mut client = Engine::start(&spec);
    client.under_way();
    drop(server);
    client.until_sample(|sample| sample.failed > 0);
    client.signal(Signal::SIGINT);
    let done = client.done();
    assert!(done.operations > 0 && done.errors.total() > 0, "{} {:?}", done.operations, done.errors);
}

/// Whether Python has aioquic; says so where it has not.
fn has_aioquic() -> bool {
    let imported = Command::new("python3").args(["-c", "import aioquic"]).stderr(Stdio::null()).status();
    let has = imported.is_ok_and(|status| status.success());
    if !has {
        eprintln!("skipped: aioquic is not installed for python3");
    }
    has
}

fn python(program: &str, arguments: &[&str]) -> Child {
    let mut python = Command::new("python3");
    python.arg("-c").arg(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    python.spawn().unwrap()
}

const AIOQUIC_SERVER: &str = include_str!("h3/server.py");
const AIOQUIC_CLIENT: &str = include_str!("h3/client.py");

/// A server of aioquic with a page of this size, and the streams that it keeps.
pub(crate) struct Aioquic {
    pub(crate) address: SocketAddr,
    pub(crate) trust: Tls,
    folder: PathBuf,
    server: Child,
}

impl Aioquic {
    /// `None`: it is not installed.
    pub(crate) fn serving(name: &str, size: usize, keeps: Option<Duration>) -> Option<Self> {
        if !has_aioquic() {
            return None;
        }
        let (own, trust) = good_certificates();
        let folder = std::env::temp_dir().join(format!("linerate-h3-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            path.display().to_string()
        };
        let mut words = vec![
            file("cert.pem", own.certificate.as_bytes()),
            file("key.pem", own.key.as_bytes()),
            file("page", &linerate_contract::page(size)),
        ];
        words.extend(keeps.map(|time| time.as_millis().to_string()));
        let mut server = python(AIOQUIC_SERVER, &words.iter().map(String::as_str).collect::<Vec<_>>());
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port.trim().parse().unwrap()));
        Some(Self { address, trust, folder, server })
    }
}

impl Drop for Aioquic {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn the_client_loads_a_server_of_aioquic() {
    let Some(server) = Aioquic::serving("loaded", 4_096, None) else { return };
    for (connections, streams, operations) in [(1, 1, 20), (2, 20, 400)] {
        let mut spec = h3_client(&server.trust, server.address, 4_096, operations, streams);
        spec.connections = connections;
        let done = Engine::start(&spec).done();
        assert_good(&done, operations, 4_096);
    }
}

#[test]
fn a_client_of_aioquic_reads_the_page_of_the_server() {
    if !has_aioquic() {
        return;
    }
    let (own, _) = good_certificates();
    let (_server, address) = Engine::serving(&h3_server(&own, 50_000));
    let client = python(AIOQUIC_CLIENT, &[&address.port().to_string()]);
    let out = client.wait_with_output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let page = String::from_utf8(linerate_contract::page(50_000)).unwrap();
    assert_eq!(text, format!("200 {page}\n").repeat(3));
}
