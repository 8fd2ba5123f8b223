//! HTTP/3 between the engine and the programs of ngtcp2, and Chromium, as far as they are installed; aioquic
//! is in `h3.rs`.

use crate::common::{Engine, good_certificates};
use crate::h2::assert_good;
use crate::h3::{h3_client, h3_server};
use crate::stage::{SIZE, Stage};
use linerate_contract::{Nanos, Spec, page};
use std::fs;
use std::io::Write;
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

/// Nothing listens on TCP there, so the page has come over QUIC.
#[test]
fn the_server_and_chromium() {
    const SIZE: usize = 300;
    let (own, _) = good_certificates();
    let (_server, address) = Engine::serving(&h3_server(&own, SIZE));
    let Some(pin) = pin(&own.key) else { return eprintln!("skipped: openssl") };
    let profile = std::env::temp_dir().join(format!("linerate-chromium-{}", std::process::id()));
    let mut browser = Command::new("chromium");
    browser.args([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--dump-dom",
    ]);
    browser.arg(format!("--user-data-dir={}", profile.display()));
    browser.arg(format!("--origin-to-force-quic-on={address}"));
    browser.arg(format!("--ignore-certificate-errors-spki-list={pin}"));
    match browser.arg(format!("https://{address}/page")).stdin(Stdio::null()).output() {
        Err(error) => return eprintln!("skipped: chromium: {error}"),
        Ok(out) => {
            let [shown, errors] = [&out.stdout, &out.stderr].map(|text| String::from_utf8_lossy(text));
            let sent = String::from_utf8(page(SIZE)).unwrap();
            assert!(shown.contains(sent.trim_end()), "{shown}\n{errors}");
        }
    }
    fs::remove_dir_all(&profile).unwrap();
}

/// The SHA-256 of the public key of this private key, in base64: Chromium accepts certificates by it.
fn pin(key: &str) -> Option<String> {
    let steps = "openssl pkey -pubout -outform der | openssl dgst -sha256 -binary | base64";
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", steps]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.spawn().ok()?;
    child.stdin.take()?.write_all(key.as_bytes()).ok()?;
    let pin = String::from_utf8(child.wait_with_output().ok()?.stdout).ok()?;
    // Of SHA-256: 44 characters.
    (pin.trim().len() == 44).then(|| pin.trim().to_owned())
}
