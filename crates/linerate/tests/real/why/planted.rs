//! Planted causes in programs of several languages and in nginx, a row each: the answer has them first.

use super::First::{Function, Text};
use super::{BUDGET, Server, is_first};

macro_rules! source {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../../scripts/experiments/why-servers/", $name)))
    };
}

pub(super) const C: Server = Server {
    source: source!("server.c"),
    programs: &["cc"],
    build: &["-O2", "-fomit-frame-pointer", "-pthread", "-o", "server", "server.c"],
    command: "./server",
    budget: BUDGET,
};
const CPP: Server = Server {
    source: source!("server.cc"),
    programs: &["c++"],
    build: &["-O2", "-std=c++17", "-pthread", "-o", "server", "server.cc"],
    command: "./server",
    budget: BUDGET,
};
const RUST: Server = Server {
    source: source!("server.rs"),
    programs: &["rustc"],
    build: &["-O", "server.rs"],
    command: "./server",
    budget: BUDGET,
};
const GO: Server = Server {
    source: source!("server.go"),
    programs: &["go"],
    build: &["build", "server.go"],
    command: "./server",
    budget: BUDGET,
};
/// Python has names of functions from 3.12 on.
const PYTHON: Server = Server {
    source: source!("server.py"),
    programs: &["sh"],
    build: &["-c", NEWEST_PYTHON],
    command: "./python server.py",
    budget: BUDGET,
};
const NEWEST_PYTHON: &str = r#"
for python in ~/.pyenv/versions/3.1[2-9]*/bin/python3 python3.13 python3.12 python3; do
    path=$("$python" -c 'import sys; sys.version_info < (3, 12) or print(sys.executable)')
    [ -z "$path" ] || exec ln -s "$path" python
done
echo no Python 3.12 >&2
exit 1"#;
const NODE: Server = Server {
    source: source!("server.js"),
    programs: &["node"],
    build: &["--version"],
    command: "{program} server.js",
    budget: 12,
};
const NGINX: Server = Server {
    source: source!("nginx.conf"),
    programs: &["nginx"],
    build: &["-v"],
    command: "{program} -p . -c",
    budget: BUDGET,
};

/// A test for each row: the server, its settings without the cause and with it, further words of the command
/// line, and what the answer has first.
macro_rules! planted {
    ($($name:ident: $server:expr, [$base:literal, $head:literal], $more:expr, $first:expr;)*) => {$(
        #[test]
        fn $name() {
            is_first(stringify!($name), &$server, [$base, $head], &$more, &$first);
        }
    )*};
}

planted! {
    a_function_of_cpp: CPP, ["", "PLANT_US=12"], [], Function(&["shop::Audit::request"]);
    a_function_of_rust: RUST, ["", "PLANT_US=12"], [], Function(&["audit_request"]);
    a_function_of_go: GO, ["", "PLANT_US=6"], [], Function(&["main.auditRequest"]);
    a_function_of_python: PYTHON, ["", "PLANT_US=20"], [], Function(&["audit_request:"]);
    // Its compiler puts the function into the one that calls it.
    a_function_of_node: NODE, ["", "PLANT_US=12"], [], Function(&["server.js:"]);
    a_lock_of_two_threads: C, ["THREADS=2 YIELD=1", "THREADS=2 YIELD=1 LOCKED=1"], [],
        Function(&["futex", "mutex_lock", "lll_lock"]);
    allocations: C, ["", "ALLOCATIONS=100"], [], Function(&["copy_headers"]);
    a_pause_by_delayed_acks: C, ["", "DELAY=1 WRITES=2"], [], Text("TCP_NODELAY");
    nginx_without_sendfile: NGINX, ["", "sendfile off;"], ["--url", "/text"],
        Function(&["pread64(2)", "writev(2)", "sendfile(2)"]);
    nginx_with_gzip: NGINX, ["", "gzip on; gzip_types text/plain;"],
        ["--url", "/page", "-H", "Accept-Encoding: gzip", "--expect", "status=200"],
        Function(&["deflate", "libz"]);
    nginx_with_a_log: NGINX, ["", "access_log a.log; access_log b.log; access_log c.log;"],
        ["--url", "/page"], Function(&["write(2)"]);
}
