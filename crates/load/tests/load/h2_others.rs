//! HTTP/2 between the engine and other programs, as far as they are installed.

use crate::common::{Engine, good_certificates, server};
use crate::h2::{assert_good, h2_client};
use crate::stage::{SIZE, Stage};
use linerate_contract::{Layer, Request, Spec, page};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Requests on few and on many streams; more than a connection of nginx serves.
fn load(stage: &Stage, layer: &str) {
    for (connections, streams, operations) in [(1, 1, 50), (1, 100, 3_000), (10, 10, 3_000)] {
        let mut spec = h2_client(layer, stage.address, SIZE, operations, streams);
        (spec.connections, spec.path) = (connections, Some("/page".into()));
        spec.tls = (layer == "h2").then(|| stage.trust.clone());
        let done = Engine::start(&spec).done();
        assert_good(&done, operations, SIZE as u64);
        assert_eq!(done.tls.is_some(), layer == "h2");
    }
}

#[test]
fn the_client_and_nginx() {
    for (layer, listen) in [("h2c", "http2"), ("h2", "ssl http2")] {
        let mut stage = Stage::new(&format!("nginx-{layer}"));
        let Stage { folder, address, .. } = &stage;
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {}/{name};\n", folder.display()))
            .concat();
        let config = format!(
            "daemon off;\npid {0}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}\
             server {{\nlisten {address} {listen};\nssl_certificate {0}/cert.pem;\n\
             ssl_certificate_key {0}/key.pem;\nroot {0};\n}}\n}}\n",
            folder.display()
        );
        fs::write(folder.join("nginx.conf"), config).unwrap();
        let nginx = ["/usr/sbin/nginx", "nginx"].into_iter().find(|name| Path::new(name).exists());
        let mut command = Command::new(nginx.unwrap_or("nginx"));
        command.args(["-p", &stage.path(""), "-c", &stage.path("nginx.conf"), "-e", "stderr"]);
        if stage.start(&mut command, Stage::listens) {
            load(&stage, layer);
        }
    }
}

#[test]
fn the_client_and_nghttpd() {
    for layer in ["h2c", "h2"] {
        let mut stage = Stage::new(&format!("nghttpd-{layer}"));
        let mut command = Command::new("nghttpd");
        command.args(["-d", &stage.path(""), "-a", "127.0.0.1"]);
        if layer == "h2c" {
            command.arg("--no-tls");
        }
        command.arg(stage.address.port().to_string());
        if layer == "h2" {
            command.args([stage.path("key.pem"), stage.path("cert.pem")]);
        }
        if stage.start(&mut command, Stage::listens) {
            load(&stage, layer);
        }
    }
}

#[test]
fn the_client_and_node() {
    for layer in ["h2c", "h2"] {
        let mut stage = Stage::new(&format!("node-{layer}"));
        let create = match layer {
            "h2c" => "createServer()",
            _ => "createSecureServer({ key: fs.readFileSync('key.pem'), cert: fs.readFileSync('cert.pem') })",
        };
        let script = format!(
            "const fs = require('fs'); const page = fs.readFileSync('page');\
             const server = require('http2').{create};\
             server.on('stream', (stream) => {{ stream.respond({{ ':status': 200 }}); stream.end(page); }});\
             server.listen({}, '127.0.0.1');",
            stage.address.port()
        );
        let folder = stage.folder.clone();
        let mut command = Command::new("node");
        if stage.start(command.args(["-e", &script]).current_dir(folder), Stage::listens) {
            load(&stage, layer);
        }
    }
}

/// The output of a program that ends by itself; `None` if it is not installed.
fn output(command: &mut Command) -> Option<String> {
    match command.output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
            Some(text)
        }
        Err(error) => {
            eprintln!("skipped: {}: {error}", command.get_program().to_string_lossy());
            None
        }
    }
}

/// The server over both layers, with the scheme of its URL.
fn each_server(run: impl Fn(&str, SocketAddr)) {
    for (layer, scheme) in [("h2c", "http"), ("h2", "https")] {
        let tls = (layer == "h2").then(|| good_certificates().0);
        let spec = Spec { layer: layer.parse().unwrap(), tls, ..server(SIZE) };
        let (_server, address) = Engine::serving(&spec);
        run(scheme, address);
    }
}

#[test]
fn the_server_and_curl() {
    each_server(|scheme, address| {
        let url = format!("{scheme}://{address}/");
        let mut curl = Command::new("curl");
        curl.args(["-s", "-k", "--max-time", "20", "--http2-prior-knowledge", "-w", "%{http_version}"]);
        if let Some(text) = output(curl.arg(&url)) {
            assert_eq!(text, String::from_utf8(page(SIZE)).unwrap() + "2");
        }
        let mut curl = Command::new("curl");
        curl.args(["-s", "-k", "--max-time", "20", "--http2-prior-knowledge", "-w", "%{http_code}"]);
        if let Some(text) = output(curl.args(["--data", &"x".repeat(100_000), &url])) {
            assert_eq!(text, "400");
        }
    });
}

/// Two are about priorities, which RFC 9113 has taken out of the protocol; for the third the window of a
/// stream grows too large after its response was sent.
const NOT_KEPT: [&str; 3] = [
    "1: Sends HEADERS frame that depend on itself",
    "2: Sends PRIORITY frame that depend on itself",
    "3: Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream",
];

#[test]
fn the_server_and_h2spec() {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../tools/h2spec");
    let (_server, address) = Engine::serving(&Spec { layer: Layer::H2c, ..server(100) });
    let mut h2spec = Command::new(if program.exists() { &program } else { Path::new("h2spec") });
    h2spec.args(["-o", "1", "-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
    let out = match h2spec.output() {
        Err(error) => return eprintln!("skipped: h2spec: {error}"),
        Ok(out) => String::from_utf8_lossy(&out.stdout).into_owned(),
    };
    let failures = out.split_once("Failures:").map_or("", |(_, failures)| failures);
    let failed: Vec<&str> = failures.lines().filter_map(|line| line.trim().strip_prefix("\u{d7} ")).collect();
    assert!(out.contains("145 tests, ") && failed.iter().all(|name| NOT_KEPT.contains(name)), "{out}");
}

#[test]
fn the_server_and_h2load() {
    each_server(|scheme, address| {
        for [connections, streams] in [["1", "1"], ["1", "100"], ["10", "10"]] {
            let mut h2load = Command::new("h2load");
            h2load.args(["-n", "2000", "-c", connections, "-m", streams, &format!("{scheme}://{address}/")]);
            if let Some(text) = output(&mut h2load) {
                assert!(text.contains("2000 succeeded, 0 failed, 0 errored"), "{text}");
                assert!(text.contains("2000 2xx"), "{text}");
            }
        }
    });
}

/// A server of gRPC that knows one message, and a client that knows one response.
const GRPC: &str = r#"
import grpc, sys
from concurrent import futures
def answer(request, context):
    if request != b"\xff\x00":
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "another message")
    return b"reply"
class Any(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(answer)
if sys.argv[1] == "serve":
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Any(),))
    server.add_insecure_port(sys.argv[2])
    server.start()
    server.wait_for_termination()
with grpc.insecure_channel(sys.argv[2]) as channel:
    call = channel.unary_unary("/shop.Items/Get")
    assert all(call(b"\xff\x00") == b"\x0a\x05" + sys.argv[3].encode() for _ in range(50))
"#;

fn has_grpc() -> bool {
    let found = Command::new("python3").args(["-c", "import grpc"]).stderr(Stdio::null()).status();
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("skipped: grpcio is not installed");
    }
    is_there
}

#[test]
fn the_client_and_grpc_of_python() {
    let mut stage = Stage::new("grpc");
    let mut command = Command::new("python3");
    command.args(["-c", GRPC, "serve", &stage.address.to_string()]);
    if !has_grpc() || !stage.start(&mut command, Stage::listens) {
        return;
    }
    for (message, ok) in [("/wA=", 300), ("", 0)] {
        let mut spec = h2_client("h2c", stage.address, 0, 300, 10);
        spec.set_option("grpc", "yes");
        (spec.path, spec.expect) = (Some("/shop.Items/Get".into()), None);
        spec.request = Some(Request { body: message.into(), ..Request::default() });
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (ok, 300 - ok), "{:?}", done.errors);
        // INVALID_ARGUMENT.
        let status = if ok == 0 { "grpc-3" } else { "grpc-0" };
        assert_eq!(done.statuses.get(status), Some(&300), "{:?}", done.statuses);
    }
}

#[test]
fn the_server_and_grpc_of_python() {
    if !has_grpc() {
        return;
    }
    let mut spec = Spec { layer: Layer::H2c, ..server(5) };
    spec.set_option("grpc", "yes");
    let (_server, address) = Engine::serving(&spec);
    let page = String::from_utf8(page(5)).unwrap();
    let mut client = Command::new("python3");
    let client = client.args(["-c", GRPC, "call", &address.to_string(), &page]).status().unwrap();
    assert!(client.success());
}
