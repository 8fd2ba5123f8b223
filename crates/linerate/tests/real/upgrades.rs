//! Servers of WebSocket and of TLS under `compare`: what the upgrade has, what is sent, and an upgrade that
//! is refused; handshakes with an older version of TLS.

use crate::commands::compare;
use crate::common::Folder;
use crate::shared_machine;
use linerate::measurement::Run;
use std::fs;

/// Wants a header, a subprotocol and texts, and speaks first; each request to `/N` is answered with status N.
const SERVER: &str = r#"
import base64, hashlib, os, socket, threading
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
def exactly(c, n):
    data = b""
    while len(data) < n:
        got = c.recv(n - len(data))
        if not got: raise OSError
        data += got
    return data
def serve(c):
    head = b""
    while b"\r\n\r\n" not in head: head += exactly(c, 1)
    path = head.split(b" ")[1]
    if path != b"/chat":
        return c.sendall(b"HTTP/1.1 %s X\r\nContent-Length: 2\r\n\r\nno" % path[1:])
    lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    if lines.get(b"Authorization") != b"Bearer x" or lines.get(b"Sec-WebSocket-Protocol") != b"chat":
        return c.sendall(b"HTTP/1.1 401 X\r\nContent-Length: 0\r\n\r\n")
    accept = base64.b64encode(hashlib.sha1(lines[b"Sec-WebSocket-Key"] + GUID).digest())
    c.sendall(b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              b"Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n\x81\x05hello")
    while True:
        first, length = exactly(c, 2)
        key, data = exactly(c, 4), exactly(c, length & 127)
        if first != 0x81: return c.sendall(b"\x88\x02\x03\xeb")
        c.sendall(bytes([first, len(data)]) + bytes(b ^ key[i % 4] for i, b in enumerate(data)))
def each(c):
    with c:
        try: serve(c)
        except OSError: pass
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
while True: threading.Thread(target=each, args=(listener.accept()[0],), daemon=True).start()
"#;

/// TLS 1.2 with one cipher suite. Each connection ends after its response, and is a letter in a file: a
/// resumed session or a full handshake.
const OLDER: &str = r#"
import os, socket, ssl, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.maximum_version = ssl.TLSVersion.TLSv1_2
context.set_ciphers("ECDHE-ECDSA-CHACHA20-POLY1305")
context.load_cert_chain("own.pem", "own.key")
answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
def each(c):
    try:
        with context.wrap_socket(c, server_side=True) as secure:
            if secure.recv(4096):
                with open("log/shaken", "a") as log: log.write("r" if secure.session_reused else "f")
                secure.sendall(answer)
    except OSError: pass
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=512)
while True: threading.Thread(target=each, args=(listener.accept()[0],), daemon=True).start()
"#;

const SERVERS: [&str; 4] = ["python3 ws.py", "python3 ./ws.py", "--ws", "-c2"];
const WANTED: [&str; 6] =
    ["-H", "Authorization: Bearer x", "--subprotocol", "chat", "--greetings=1", "--url=/chat"];

fn workplace(name: &str) -> Folder {
    let folder = Folder::new(name);
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.path().join("ws.py"), SERVER).unwrap();
    folder
}

#[test]
fn an_upgrade_has_what_the_user_says_and_messages_are_texts_after_a_greeting() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("upgrades");
    let out = compare(&folder, &[&SERVERS[..], &WANTED, &["--text", "--no-why"]].concat());
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
    let load = run.comparison.unwrap().load.unwrap();
    let headers = ["Authorization: Bearer x", "Sec-WebSocket-Protocol: chat"];
    assert_eq!(load.requests[0].headers, headers);
    assert_eq!((&*load.options["text"], &*load.options["greetings"]), ("yes", "1"));
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let bytes = compare(&folder, &[&SERVERS[..], &WANTED].concat());
    assert_eq!(bytes.status, 3, "{}{}", bytes.stdout, bytes.stderr);
}

#[test]
fn an_upgrade_that_is_refused_has_its_status_and_what_to_do() {
    let Some(_machine) = shared_machine() else { return };
    for (url, status, part) in [
        ("/200", 200, "another path"),
        ("/404", 404, "another path"),
        ("/301", 301, "Location"),
        ("/chat", 401, "Authorization"),
    ] {
        let folder = workplace(&format!("upgrade-{status}"));
        let out = compare(&folder, &[&SERVERS[..], &["--url", url]].concat());
        let text = format!("the upgrade has status {status}; ");
        assert_eq!(out.status, 3, "{}{}", out.stdout, out.stderr);
        assert!(out.stderr.contains(&text) && out.stderr.contains(part), "{url}: {}", out.stderr);
    }
}

#[test]
fn options_of_websocket_and_tls_are_refused_where_there_is_none() {
    let folder = workplace("upgrade-options");
    for (option, part) in [("--text", "are for --ws"), ("--handshake=full", "is for servers of TLS")] {
        let out = compare(&folder, &["python3 ws.py", "python3 ./ws.py", option]);
        assert!(out.status == 2 && out.stderr.contains(part), "{option}: {}", out.stderr);
    }
}

#[test]
fn servers_of_tls_1_2_are_compared_by_full_and_by_resumed_handshakes() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("older-tls");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (name, text) in [
        ("older.py", OLDER.to_owned()),
        ("own.pem", made.cert.pem()),
        ("own.key", made.signing_key.serialize_pem()),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    for handshake in ["full", "resumed"] {
        let log = folder.path().join("log");
        let _ = fs::remove_dir_all(folder.path().join("out"));
        let _ = fs::remove_dir_all(&log);
        fs::create_dir(&log).unwrap();
        let servers = ["python3 older.py", "python3 ./older.py", "--https", "-c2", "--share", "log"];
        let out = compare(&folder, &[&servers[..], &["--no-why", "--handshake", handshake]].concat());
        assert_eq!(out.status, 0, "{handshake}: {}{}", out.stdout, out.stderr);
        let shaken = fs::read_to_string(log.join("shaken")).unwrap();
        let resumed = shaken.matches('r').count();
        assert_eq!(resumed > shaken.len() / 2, handshake == "resumed", "{resumed} of {}", shaken.len());
        assert_eq!(resumed > 0, handshake == "resumed", "{resumed} of {}", shaken.len());
    }
}
