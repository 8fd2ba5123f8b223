//! Images of containers as servers, without an engine.

use crate::commands::{compare, workplace};
use crate::common::{self, Folder, Output};
use crate::launch::contents;
use crate::{command, shared_machine};
use linerate::measurement::Run;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A server that answers with `/www/index.html` and the variable MARK, and appends to `/www/log`. Its port is
/// PORT, or its argument; it needs what listens on the port BESIDE.
const SERVER_IN_C: &str = r#"
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **words) {
    char page[4096], answer[8192], request[65536];
    int file = open("/www/index.html", O_RDONLY);
    int log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || log < 0 || write(log, "started\n", 8) != 8) return 2;
    char *mark = getenv("MARK") ? getenv("MARK") : "", *beside = getenv("BESIDE");
    int length = read(file, page, sizeof page), all = length + strlen(mark);
    int whole = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%.*s%s", all, length, page,
                        mark);
    struct sockaddr_in at = {AF_INET, htons(atoi(count > 1 ? words[1] : getenv("PORT"))),
                             {htonl(INADDR_LOOPBACK)}, {0}};
    if (beside && count == 1) {
        struct sockaddr_in other = at;
        other.sin_port = htons(atoi(beside));
        if (connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&other, sizeof other)) return 4;
    }
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 128)) return 3;
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int connection = accept(listener, 0, 0);
        if (fork() == 0) {
            while (read(connection, request, sizeof request) > 0)
                if (write(connection, answer, whole) != whole) break;
            _exit(0);
        }
        close(connection);
    }
}
"#;

/// The server above; `None`, with a message, without a compiler.
fn compiled(folder: &Folder) -> Option<Vec<u8>> {
    fs::write(folder.path().join("server.c"), SERVER_IN_C).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-static", "-O1", "-o", "server", "server.c"]).current_dir(folder.path());
    if !compile.status().is_ok_and(|status| status.success()) {
        common::skip("no C compiler with a static library");
        return None;
    }
    Some(fs::read(folder.path().join("server")).unwrap())
}

/// The companion of an image that serves, and of a program of the user's own.
#[test]
fn a_companion_may_be_an_image_with_the_variables_and_volumes_of_the_options() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("launch-beside");
    let Some(server) = compiled(&folder) else { return };
    for name in ["one", "beside"] {
        image(&folder.path().join(name), &server, name);
    }
    fs::create_dir(folder.path().join("pages")).unwrap();
    fs::write(folder.path().join("pages/index.html"), "mine!").unwrap();
    let needs = "import os, socket\n\
                 peer = socket.create_connection(('127.0.0.1', int(os.environ['BESIDE'])))\n\
                 peer.send(b'GET / HTTP/1.1\\r\\n\\r\\n')\n\
                 assert peer.recv(1000).endswith(b'mine!?'), 'the page and the mark'\n\
                 exec(open('server.py').read())\n";
    fs::write(folder.path().join("needs.py"), needs).unwrap();
    let before = contents(&folder.path().join("pages"));
    let more = ["-c", "2", "-v", "pages:/www", "-e", "MARK=?", "-e", "BESIDE=9000"];
    for servers in [["oci:one", "oci:one"], ["python3 needs.py", "python3 ./needs.py"]] {
        let _ = fs::remove_dir_all(folder.path().join("out"));
        let alone = compare(&folder, &[&servers[..], &more].concat());
        assert_eq!(alone.status, 3, "without a companion: {}{}", alone.stdout, alone.stderr);
        let _ = fs::remove_dir_all(folder.path().join("out"));
        let out = compare(&folder, &[&servers[..], &more, &["--with", "oci:beside 9000"]].concat());
        assert_eq!(out.status, 0, "{servers:?}: {}{}", out.stdout, out.stderr);
        let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
        let bytes = run.learned.expectations[0].bytes;
        assert_eq!(bytes, Some(if servers[0] == "oci:one" { 6 } else { 5 }), "{servers:?}");
    }
    assert_eq!(contents(&folder.path().join("pages")), before);
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let none = compare(&folder, &["oci:one", "oci:one", "--with", "oci:nowhere"]);
    assert!(none.status == 2 && none.stderr.contains("nowhere"), "{}", none.stderr);
}

#[test]
fn images_of_files_are_measured_without_an_engine_and_nothing_of_them_changes() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("launch-image");
    let Some(server) = compiled(&folder) else { return };
    for (name, page) in [("one", "hello"), ("two", "goodbye")] {
        image(&folder.path().join(name), &server, page);
    }
    // The same as an archive, which `docker-archive:` takes as well.
    let mut archive = tar::Builder::new(fs::File::create(folder.path().join("two.tar")).unwrap());
    archive.append_dir_all(".", folder.path().join("two")).unwrap();
    archive.finish().unwrap();
    fs::create_dir(folder.path().join("pages")).unwrap();
    fs::write(folder.path().join("pages/index.html"), "mine!").unwrap();
    let words = ["oci:one", "docker-archive:two.tar", "-n", "v1", "-n", "v2", "-c", "2"];
    let differ = compare(&folder, &words);
    assert_eq!(differ.status, 3, "{}", differ.stderr);
    assert!(differ.stderr.contains("hello") && differ.stderr.contains("goodbye"), "{}", differ.stderr);
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let before = contents(&folder.path().join("pages"));
    let out = compare(&folder, &[&words[..], &["-v", "pages:/www", "-e", "MARK=x"]].concat());
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(contents(&folder.path().join("pages")), before);
    let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
    assert_eq!(run.learned.expectations[0].bytes, Some(6), "with its mark");
    assert!(out.stdout.contains("CPU/request"), "{}", out.stdout);
}

/// An OCI layout with this server in one layer.
fn image(folder: &Path, server: &[u8], page: &str) {
    use ring::digest::{SHA256, digest};
    let mut layer = tar::Builder::new(Vec::new());
    for (name, content) in [("server", server), ("www/index.html", page.as_bytes())] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        layer.append_data(&mut header, name, content).unwrap();
    }
    let blob = |bytes: &[u8]| {
        let hex: String = digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        fs::create_dir_all(folder.join("blobs/sha256")).unwrap();
        fs::write(folder.join("blobs/sha256").join(&hex), bytes).unwrap();
        format!("sha256:{hex}")
    };
    let layer = blob(&layer.into_inner().unwrap());
    let architecture = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    let config = serde_json::json!({
        "architecture": architecture, "os": "linux", "rootfs": {"type": "layers", "diff_ids": [layer]},
        "config": {"Entrypoint": ["/server"], "Env": ["A=1"], "WorkingDir": "/www"},
    });
    let config = blob(config.to_string().as_bytes());
    let manifest = serde_json::json!({"config": {"digest": config}, "layers": [{"digest": layer}]});
    let manifest = blob(manifest.to_string().as_bytes());
    let index = serde_json::json!({"manifests": [{"digest": manifest}]});
    fs::write(folder.join("index.json"), index.to_string()).unwrap();
}

#[test]
fn a_container_of_an_engine_is_refused_with_the_way_out() {
    let folder = workplace("launch-docker");
    let words = ["docker run -p 80:80 shop:1", "podman run shop:2"];
    let out = Output::run(command(&["compare"]).args(words).current_dir(folder.path()));
    assert_eq!(out.status, 2, "{}", out.stderr);
    assert!(out.stderr.contains("image:shop:1"), "{}", out.stderr);
    let missing =
        Output::run(command(&["compare", "image:no-such:1", "image:no-such:2"]).current_dir(folder.path()));
    assert_eq!(missing.status, 2, "{}", missing.stderr);
    assert!(missing.stderr.contains("docker-archive:FILE or oci:DIR"), "{}", missing.stderr);
}
