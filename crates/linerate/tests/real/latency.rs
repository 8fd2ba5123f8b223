//! Latencies at a fixed rate. The planted difference is far larger than any noise.

use crate::commands::{compare_within, workplace};
use crate::{common, machine};
use linerate::judge::pairs::Measure;
use linerate::stats::verdict::Verdict;
use std::fs;

#[test]
fn half_a_millisecond_is_found_at_half_of_the_capacity() {
    let Some(_machine) = machine() else { return };
    let folder = workplace("latency");
    // A server with a pause of 0.5 ms.
    let slower = "env PAUSE=0.0005 python3 server.py";
    let args = ["python3 server.py", slower, "-n", "v1", "-n", "v2", "-c", "4", "--rate", "200"];
    let out = compare_within("40s", &folder, &args);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let compared = common::report(&folder.path().join("out")).comparison.unwrap();
    let cell = &compared.cells[0];
    assert!(cell.units > 0 && cell.detail.is_none() && cell.findings.rate().is_none(), "{cell:?}");
    let p50 = cell.findings.main().unwrap();
    let [base, head] = p50.values.unwrap();
    assert!(p50.measure == Measure::P50 && head - base > 300.0, "{p50:?}");
    // On a machine where others have half of the CPUs the time is over after a few units.
    if cell.units >= 12 {
        assert_eq!(cell.latency_verdict, Some(Verdict::Slower), "{}{}", out.stdout, out.stderr);
        assert!(out.stdout.contains("v2 responds later than v1 at 200/s: p50 +"), "{}", out.stdout);
    }
    let load = cell.load.as_ref().unwrap();
    assert_eq!((load.per_second, load.share), (200, None));
}

#[test]
fn a_share_is_one_of_the_rate_of_a_closed_loop() {
    let Some(_machine) = machine() else { return };
    let folder = workplace("latency-share");
    let out = compare_within("12s", &folder, &["python3 server.py", "python3 ./server.py", "--rate", "25%"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let compared = common::report(&folder.path().join("out")).comparison.unwrap();
    let load = compared.cells[0].load.clone().unwrap();
    let capacity = load.capacity.unwrap();
    assert_eq!((load.share, load.per_second), (Some(0.25), (capacity / 4.0).round() as u64));
    let words: Vec<&str> = out.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("/s is 25 % of python3 server.py's capacity"), "{}", out.stdout);
    assert!(folder.read("out/run.json").contains("--rate 25%"), "it repeats the run");
}

/// A server that takes 5 ms more for one of its paths if it is told so.
const OF_PATHS: &str = "import http.server, os, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = -1
    def do_GET(self):
        if self.path == '/report' and 'slow' in sys.argv:
            time.sleep(0.005)
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'ok')
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
";

#[test]
fn the_row_of_a_path_shows_what_that_path_alone_takes_longer() {
    let Some(_machine) = machine() else { return };
    let folder = workplace("latency-mix");
    fs::write(folder.path().join("paths.py"), OF_PATHS).unwrap();
    let mix = r#"{"path": "/report"}{"path": "/items", "weight": 2}{"path": "/users"}"#.replace("}{", "}\n{");
    fs::write(folder.path().join("mix.jsonl"), mix).unwrap();
    let servers = ["python3 paths.py", "python3 paths.py slow", "-n", "v1", "-n", "v2"];
    let load = ["--requests", "mix.jsonl", "-c", "8", "--rate", "200", "--no-why"];
    let out = compare_within("12s", &folder, &[&servers[..], &load].concat());
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("by request at 200/s"), "{}", out.stdout);
    let compared = common::report(&folder.path().join("out")).comparison.unwrap();
    let rows = &compared.cells[0].by_request;
    let paths: Vec<&str> = rows.iter().map(|row| row.path.as_str()).collect();
    assert_eq!(paths, ["/items", "/report", "/users"], "the most frequent first");
    for row in rows {
        assert!(row.operations.iter().all(|count| *count > 0) && row.failed() == [0, 0], "{row:?}");
        let [base, head] = row.p50.unwrap().values.unwrap();
        assert_eq!(head - base > 3_000.0, row.path == "/report", "{}{rows:?}", out.stdout);
    }
}
