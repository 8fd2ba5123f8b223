//! HTTP/3 between the engine and the programs of ngtcp2, as far as they are installed; aioquic is in `h3.rs`.

use crate::common::{Engine, good_certificates};
use crate::h2::assert_good;
use crate::h3::{h3_client, h3_server};
use crate::stage::{SIZE, Stage};
use linerate_contract::{Nanos, Spec, page};
use std::fs;
use std::process::{Command, Stdio};

fn client(stage: &Stage, operations: u64, streams: u32) -> Spec {
    let spec = h3_client(&stage.trust, stage.address, SIZE, operations, streams);
    Spec { path: Some("/page".into()), ..spec }
}

fn serves(stage: &Stage) -> bool {
    let spec = Spec { connections: 1, timeout_ns: Nanos(200_000_000), ..client(stage, 1, 1) };
    Engine::start(&spec).done().operations == 1
}

#[test]
fn the_client_and_ngtcp2() {
    let mut stage = Stage::new("gtlsserver");
    let port = stage.address.port().to_string();
    let files = ["key.pem", "cert.pem"].map(|name| stage.path(name));
    let mut server = Command::new("gtlsserver");
    server.args(["-q", "-d", &stage.path("."), "127.0.0.1", &port]).args(files);
    if !stage.start(&mut server, serves) {
        return;
    }
    for (connections, streams, operations) in [(1, 1, 20), (1, 50, 500), (5, 10, 500)] {
        let spec = Spec { connections, ..client(&stage, operations, streams) };
        assert_good(&Engine::start(&spec).done(), operations, SIZE as u64);
    }
}

#[test]
fn the_server_and_ngtcp2() {
    const SIZE: usize = 50_000;
    let (own, _) = good_certificates();
    let (_server, address) = Engine::serving(&h3_server(&own, SIZE));
    let folder = std::env::temp_dir().join(format!("linerate-gtlsclient-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut client = Command::new("gtlsclient");
    client.args(["-q", "--exit-on-all-streams-close", "--download", folder.to_str().unwrap(), "127.0.0.1"]);
    client.args([address.port().to_string(), format!("https://localhost:{}/page", address.port())]);
    match client.stdin(Stdio::null()).output() {
        Err(error) => eprintln!("skipped: gtlsclient: {error}"),
        Ok(out) => {
            let (text, got) = (String::from_utf8_lossy(&out.stderr), fs::read(folder.join("page")));
            assert!(got.unwrap_or_default() == page(SIZE), "{:?} {text}", out.status);
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}
