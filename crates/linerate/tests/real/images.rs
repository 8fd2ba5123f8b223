//! Images of containers as servers, without an engine.

use crate::commands::{compare, workplace};
use crate::common::{self, Output};
use crate::launch::contents;
use crate::{command, shared_machine};
use linerate::measurement::Run;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A server that answers with `/www/index.html`, and appends to `/www/log` at its start.
const SERVER_IN_C: &str = r#"
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
    char page[4096], answer[8192], request[65536];
    int file = open("/www/index.html", O_RDONLY);
    int log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || log < 0 || write(log, "started\n", 8) != 8) return 2;
    int length = read(file, page, sizeof page);
    int whole = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%.*s", length, length, page);
    struct sockaddr_in at = {AF_INET, htons(atoi(getenv("PORT"))), {htonl(INADDR_LOOPBACK)}, {0}};
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

#[test]
fn images_of_files_are_measured_without_an_engine_and_nothing_of_them_changes() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("launch-image");
    fs::write(folder.path().join("server.c"), SERVER_IN_C).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-static", "-O1", "-o", "server", "server.c"]).current_dir(folder.path());
    if !compile.status().is_ok_and(|status| status.success()) {
        return common::skip("no C compiler with a static library");
    }
    let server = fs::read(folder.path().join("server")).unwrap();
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
    assert_eq!(run.learned.expectations[0].bytes, Some(5));
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
