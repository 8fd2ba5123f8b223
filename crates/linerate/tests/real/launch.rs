//! How commands of the user's own are started: their files, and their first response.

use crate::commands::{compare, compare_within, workplace};
use crate::common::{self, Folder, Output};
use crate::host::{assert_all_gone, lab_processes};
use crate::{command, shared_machine};
use linerate::measurement::Run;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A server that leaves what real ones leave: a line a request, rows in a database, a PID file and a Unix
/// socket in `/tmp` and beside it, over which it answers. `SPIN`: seconds of each request.
const WRITES: &str = r#"
import os, socket, sqlite3, sys, threading, time
log = open("requests.log", "a")
rows = sqlite3.connect("shop.db", check_same_thread=False, isolation_level=None)
rows.execute("pragma synchronous = off")
rows.execute("create table if not exists asked (at real)")
lock = threading.Lock()
for pid in [sys.argv[1] + ".pid", "shop.pid", "/run/shop.pid", "/dev/shm/shop.pid"]:
    with open(pid, "x") as file:
        file.write(str(os.getpid()))
behind = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for listener, path in zip(behind, [sys.argv[1] + ".sock", "shop.sock"]):
    listener.bind(path)
    listener.listen()
spin = float(os.environ.get("SPIN", "0"))
def answer():
    while True:
        with behind[0].accept()[0] as connection:
            connection.send(b"hello")
threading.Thread(target=answer, daemon=True).start()
def serve(connection):
    with connection:
        try:
            while connection.recv(65536):
                until = time.perf_counter() + spin
                with lock:
                    log.write("a line\n")
                    log.flush()
                    rows.execute("insert into asked values (?)", (time.time(),))
                with socket.socket(socket.AF_UNIX) as beside:
                    beside.connect(sys.argv[1] + ".sock")
                    body = beside.recv(16)
                while time.perf_counter() < until:
                    pass
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        except OSError:
            pass
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

/// All files of a folder with their contents.
pub(crate) fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    let mut all: Vec<_> = files
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap()))
        .collect();
    all.sort();
    all
}

fn cells(folder: &Folder) -> Vec<linerate::report::comparison::ComparedCell> {
    common::report(&folder.path().join("out")).comparison.unwrap().cells
}

/// The commands of two versions: of a shell, with one place for all that they write.
fn versions(place: &str) -> [String; 2] {
    [format!("SPIN=0 python3 writes.py {place}"), format!("cd . && SPIN=0.02 python3 writes.py {place}")]
}

#[test]
fn what_servers_write_ends_with_them_and_versions_with_one_socket_and_one_database_do_not_meet() {
    let Some(_machine) = shared_machine() else { return };
    let processes = lab_processes();
    let folder = workplace("launch-writes");
    fs::write(folder.path().join("writes.py"), WRITES).unwrap();
    fs::write(folder.path().join("requests.log"), "mine\n").unwrap();
    let (before, place) = (contents(folder.path()), folder.path().with_extension("place"));
    let [fast, slow] = versions(place.to_str().unwrap());
    let out = compare_within("12s", &folder, &[&fast, &slow, "-n", "v1", "-n", "v2", "-c", "2"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(contents(folder.path()), before);
    assert!(["pid", "sock"].iter().all(|end| !place.with_extension(end).exists()));
    assert!(!Path::new("/run/shop.pid").exists() && !Path::new("/dev/shm/shop.pid").exists());
    assert_all_gone(&processes);
    let rate = cells(&folder)[0].findings.rate().unwrap().percent();
    assert!(rate < -50.0, "{rate}: {}", out.stdout);
    // Each start is measured.
    let units = common::duets(&folder.path().join("out"));
    let starts = units.iter().filter_map(|unit| unit.both()).flatten();
    let starts: Vec<_> = starts.filter_map(|side| side.cold_start.as_ref()).collect();
    assert!(!starts.is_empty() && starts.iter().all(|start| start.listens.0 > 0 && start.responds.0 > 0));
    assert!(folder.read("out/report.md").contains("starts in"), "{}", folder.read("out/report.md"));
}

#[test]
fn what_is_shared_lasts() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("launch-share");
    fs::create_dir(folder.path().join("kept")).unwrap();
    let writes = "echo x >> kept/starts; echo x >> lost; exec python3 server.py";
    let words = [writes, writes, "-n", "a", "-n", "b", "--share", "kept"];
    let out = compare(&folder, &words);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(folder.read("kept/starts").lines().count() >= 4);
    assert!(!folder.path().join("lost").exists());
    let missing = compare(&folder, &[writes, writes, "--share", "other"]);
    assert_eq!(missing.status, 2, "{}", missing.stderr);
    assert!(missing.stderr.contains("--share other") && missing.stderr.contains("mkdir -p other"));
}

/// As root, an ordinary user's overlays are tried as well: those of a user namespace.
#[test]
fn the_files_of_an_ordinary_user_are_unchanged_too() {
    let Some(_machine) = shared_machine() else { return };
    if !nix::unistd::geteuid().is_root() {
        return; // the other tests have run without privileges
    }
    let folder = workplace("launch-user");
    let (user, group) = (nix::unistd::Uid::from_raw(1777), nix::unistd::Gid::from_raw(1777));
    fs::write(folder.path().join("writes.py"), WRITES).unwrap();
    fs::write(folder.path().join("requests.log"), "mine\n").unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_linerate")).parent().unwrap();
    let own = |name: &str| folder.path().join(name);
    fs::create_dir(own("bin")).unwrap();
    for program in ["linerate", "linerate-load"] {
        fs::copy(bin.join(program), own("bin").join(program)).unwrap();
    }
    for name in ["", "writes.py", "requests.log"] {
        nix::unistd::chown(&own(name), Some(user), Some(group)).unwrap();
    }
    let [fast, slow] = versions(own("place").to_str().unwrap());
    let mut compare = Command::new("setpriv");
    compare.args(["--reuid=1777", "--regid=1777", "--clear-groups"]).arg(own("bin/linerate"));
    compare.args(["compare", &fast, &slow, "-n", "v1", "-n", "v2", "-c", "2", "--budget", "12s"]);
    compare.args(["--out", "out"]).env("XDG_CACHE_HOME", own("cache")).env("PATH", "/usr/bin:/bin");
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for part in ["suites", "systems"] {
        common::copy(&home.join(part), &own("home").join(part));
    }
    let before = contents(folder.path());
    let out = Output::run(compare.env("LINERATE_HOME", own("home")).current_dir(folder.path()));
    if out.status == 3 && out.stderr.contains("the kernel refuses namespaces") {
        return common::skip(&out.stderr);
    }
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(contents(folder.path()), before);
    assert!(cells(&folder)[0].findings.rate().unwrap().percent() < -50.0, "{}", out.stdout);
}

/// The working folder is two overlays deep, so that the kernel refuses another one.
#[test]
fn where_the_kernel_refuses_an_overlay_the_working_folder_of_a_user_without_rights_is_a_copy() {
    let Some(_machine) = shared_machine() else { return };
    let has = |program: &str| Path::new("/usr/sbin").join(program).exists();
    if !nix::unistd::geteuid().is_root() || !has("runuser") {
        return common::skip("a copy of the working folder: it needs root and runuser");
    }
    let folder = workplace("launch-copy");
    let own = |name: &str| folder.path().join(name);
    let writes = "import os\nopen('log', 'a').write('x')\nopen('mine', 'a').write('more')\n\
                  os.makedirs('below')\nopen('below/file', 'x').write('x')\nexec(open('server.py').read())\n";
    fs::create_dir_all(own("bin")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_linerate")).parent().unwrap();
    for program in ["linerate", "linerate-load"] {
        fs::copy(bin.join(program), own("bin").join(program)).unwrap();
    }
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for part in ["suites", "systems"] {
        common::copy(&home.join(part), &own("home").join(part));
    }
    fs::create_dir(own("lower")).unwrap();
    fs::rename(own("server.py"), own("lower/server.py")).unwrap();
    fs::write(own("lower/writes.py"), writes).unwrap();
    fs::write(own("lower/mine"), "mine\n").unwrap();
    // What the user has below the mounts is listed at the end.
    let script = r#"
        chown -R nobody lower && mkdir -p memory middle work && mount -t tmpfs tmpfs memory || exit 90
        layer() {
            mkdir memory/$3 memory/$3-work && chown nobody memory/$3
            mount -t overlay $3 -o lowerdir=$1,upperdir=memory/$3,workdir=memory/$3-work $2 || exit 90
        }
        layer lower middle one && layer middle work two && mkdir memory/out && chown nobody memory/out
        place=$PWD && cd work || exit
        runuser -u nobody -- env HOME=/nonexistent XDG_CACHE_HOME="$place/memory/out" PATH=/usr/bin:/bin \
            "$place/bin/linerate" compare 'python3 writes.py' 'python3 ./writes.py' -c 2 --budget 4s \
            --no-why --out "$place/memory/out/run" || exit
        echo "files: $(find . -type f | sort | tr '\n' ' ')$(cat mine)"
    "#;
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", script]).env("LINERATE_HOME", own("home")).current_dir(folder.path());
    let out = Output::run(&mut shell);
    if out.status == 90 || out.stderr.contains("the kernel refuses namespaces") {
        return common::skip(&out.stderr);
    }
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("files: ./mine ./server.py ./writes.py mine\n"), "{}", out.stdout);
    let words = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("/work is a copy, which ends with the unit"), "{words}");
    assert!(!words.contains("has no layer of its own"), "{words}");
    assert!(words.contains("note: ") && !words.contains("wrote on stderr at its start"), "{words}");
}

/// A server with habits, by its first argument.
const HABITS: &str = r#"
import os, socket, sys, threading, time
habit, port = sys.argv[1], int(os.environ["PORT"])
began = time.monotonic()
def answer():
    status = "503 Wait" if habit == "warms" and time.monotonic() < began + 1 else "200 OK"
    if habit == "silent" and time.monotonic() < began + 1:
        return None
    if habit == "logs":
        print("x" * 4000, flush=True)
    return f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok".encode()
if habit == "late":
    time.sleep(1)
if habit == "fails":
    open("starts", "a").write("x")
    if os.path.getsize("starts") % 3 == 2:
        sys.exit("bad luck")
address, family = ("127.0.0.1", socket.AF_INET)
if habit in ("six", "only"):
    address, family = ("::1" if habit == "six" else "::", socket.AF_INET6)
listener = socket.create_server((address, port), family=family)
def serve(connection):
    with connection:
        try:
            while connection.recv(65536):
                response = answer()
                if response is None:
                    return
                connection.send(response)
        except OSError:
            pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

fn habits(name: &str) -> Folder {
    let folder = workplace(name);
    fs::write(folder.path().join("habits.py"), HABITS).unwrap();
    folder
}

#[test]
fn a_server_that_is_not_ready_at_first_is_waited_for() {
    let Some(_machine) = shared_machine() else { return };
    let folder = habits("launch-ready");
    for habit in ["late", "warms", "silent"] {
        let server = format!("python3 habits.py {habit}");
        let out = compare(&folder, &[&server, &server, "-c", "2"]);
        assert_eq!(out.status, 0, "{habit}: {}{}", out.stdout, out.stderr);
        let _ = fs::remove_dir_all(folder.path().join("out"));
        let out = compare(&folder, &[&server, &server, "-c", "2", "--ready", "300ms"]);
        assert_eq!(out.status, 3, "{habit}: {}{}", out.stdout, out.stderr);
        let _ = fs::remove_dir_all(folder.path().join("out"));
    }
}

/// Longer than the usual 10 s; the later starts are quick.
#[test]
fn a_server_that_listens_after_eleven_seconds_is_waited_for() {
    let Some(_machine) = shared_machine() else { return };
    let folder = habits("launch-eleven");
    fs::create_dir(folder.path().join("cache")).unwrap();
    let server = "[ -e cache/full ] || sleep 11; touch cache/full; exec python3 habits.py quick";
    let words = [server, server, "-c", "2", "--ready", "60s", "--share", "cache", "--no-why"];
    let out = compare_within("16s", &folder, &words);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
}

#[test]
fn a_server_of_ipv6_alone_is_reached_there() {
    let Some(_machine) = shared_machine() else { return };
    let folder = habits("launch-six");
    for habit in ["six", "only"] {
        let server = format!("python3 habits.py {habit}");
        let out = compare(&folder, &[&server, &server, "-c", "2"]);
        assert_eq!(out.status, 0, "{habit}: {}{}", out.stdout, out.stderr);
        let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
        let address = run.learned.servers[0].address.unwrap().to_string();
        assert_eq!(address, "[::1]:8080", "{habit}");
        let _ = fs::remove_dir_all(folder.path().join("out"));
    }
}

#[test]
fn a_start_that_fails_is_tried_again_and_counted() {
    let Some(_machine) = shared_machine() else { return };
    let folder = habits("launch-fails");
    fs::write(folder.path().join("starts"), "").unwrap();
    let words = ["python3 server.py", "python3 habits.py fails", "-n", "good", "-n", "odd", "--expect"];
    let out = compare_within("12s", &folder, &[&words[..], &["status=200", "--share", "starts"]].concat());
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let report = folder.read("out/report.md");
    assert!(report.contains("odd failed at its start"), "{report}");
}

#[test]
fn a_server_that_logs_each_request_is_measured_and_the_report_says_so() {
    let Some(_machine) = shared_machine() else { return };
    let folder = habits("launch-logs");
    let out = compare(&folder, &["python3 habits.py logs", "python3 ./habits.py logs", "-c", "4"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(folder.read("out/report.md").contains("logs (the server prints"), "{}", out.stdout);
}

#[test]
fn another_protocol_and_another_status_are_named() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("launch-protocols");
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.path().join("cert.pem"), key.cert.pem()).unwrap();
    fs::write(folder.path().join("key.pem"), key.signing_key.serialize_pem()).unwrap();
    let tls = "import os, socket, ssl\n\
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n\
        context.load_cert_chain('cert.pem', 'key.pem')\n\
        listener = socket.create_server(('127.0.0.1', int(os.environ['PORT'])))\n\
        while True:\n\
        \x20   try:\n\
        \x20       context.wrap_socket(listener.accept()[0], server_side=True)\n\
        \x20   except OSError:\n\
        \x20       pass\n";
    fs::write(folder.path().join("tls.py"), tls).unwrap();
    let engine = Path::new(env!("CARGO_BIN_EXE_linerate")).display();
    let h2 = format!("exec {engine} serve h2c://127.0.0.1:$PORT");
    for (server, words, part) in [
        ("python3 tls.py", &[][..], "it speaks TLS: --https"),
        (&*h2, &[], "it speaks HTTP/2: --h2"),
        ("python3 server.py", &["--h2"], "speaks HTTP/1.1: leave out --h2"),
        (&h2, &["--h2", "--url", "/nothing", "--expect", "status=418"], "status 200"),
    ] {
        let names = ["-n", "a", "-n", "b", "--ready", "4s"];
        let out = compare(&folder, &[&[server, server], &names[..], words].concat());
        assert_eq!(out.status, 3, "{server}: {}{}", out.stdout, out.stderr);
        assert!(out.stderr.contains(part), "{server} {words:?}: {}", out.stderr);
        let _ = fs::remove_dir_all(folder.path().join("out"));
    }
}

#[test]
fn a_file_that_is_not_executable_is_no_program_of_a_shell_either() {
    let folder = workplace("launch-shell");
    fs::set_permissions(folder.path().join("server.py"), PermissionsExt::from_mode(0o644)).unwrap();
    let out = compare(&folder, &["A=1 ./server.py", "A=1 ./server.py"]);
    assert!(out.status == 2 && out.stderr.contains("chmod +x"), "{}", out.stderr);
}

#[test]
fn a_server_that_lists_the_folder_of_the_run_has_one_content() {
    let Some(_machine) = shared_machine() else { return };
    let folder = Folder::new("commands-listing");
    fs::create_dir_all(folder.path()).unwrap();
    let server = "python3 -m http.server --bind 127.0.0.1 {port}";
    let mut compare = command(&["compare", server, &format!("env {server}"), "--no-why", "--budget", "5s"]);
    let out = Output::run(compare.args(["--no-latency"]).current_dir(folder.path()));
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let run = fs::read_dir(folder.path().join(".linerate")).unwrap().flatten();
    assert_eq!(run.filter(|entry| entry.path().join("report.html").exists()).count(), 1);
}
