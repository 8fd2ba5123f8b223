//! php-fpm as Debian installs it: its own pool file, its socket and PID file in `/run/php`, its user.

use crate::commands::{compare, workplace};
use crate::common::skip;
use crate::shared_machine;
use std::fs;
use std::path::{Path, PathBuf};

/// A page for each request, over the socket of Debian's pool.
const NGINX: &str = "daemon off;\nuser www-data;\npid /run/nginx-here.pid;\nerror_log stderr;\n\
    events {}\nhttp {\n  access_log off;\n  server {\n    listen 127.0.0.1:8080;\n    root HERE;\n\
    \x20   location / { include /etc/nginx/fastcgi_params;\n\
    \x20     fastcgi_param SCRIPT_FILENAME $document_root/index.php;\n\
    \x20     fastcgi_pass unix:/run/php/phpVERSION-fpm.sock; }\n  }\n}\n";

/// The version whose program and pool file are there.
fn version() -> Option<String> {
    let versions = fs::read_dir("/etc/php").ok()?.flatten();
    versions.map(|entry| entry.file_name().to_string_lossy().into_owned()).find(|version| {
        let pool = PathBuf::from(format!("/etc/php/{version}/fpm/pool.d/www.conf"));
        pool.exists() && Path::new(&format!("/usr/sbin/php-fpm{version}")).exists()
    })
}

/// All entries of `/run/php`, where there is one.
fn run() -> Vec<PathBuf> {
    fs::read_dir("/run/php").into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[test]
fn php_fpm_by_debians_own_file_is_compared_and_leaves_nothing_in_run() {
    let Some(_machine) = shared_machine() else { return };
    let Some(version) = version().filter(|_| Path::new("/usr/sbin/nginx").exists()) else {
        return skip("php-fpm by its own pool file: php-fpm and nginx are not both installed");
    };
    if !Path::new("/run/php").exists() {
        return skip("php-fpm by its own pool file: /run/php is not there (systemd-tmpfiles --create)");
    }
    let folder = workplace("fpm");
    let here = folder.path().canonicalize().unwrap();
    fs::write(here.join("index.php"), "<?php echo 'hello ', getmypid() > 0 ? 'you' : '';\n").unwrap();
    let config = NGINX.replace("HERE", &here.display().to_string()).replace("VERSION", &version);
    fs::write(here.join("nginx.conf"), config).unwrap();
    let before = run();
    // Both sides have the socket and the PID file of one path at the same time.
    let server = format!("php-fpm{version} -F & exec nginx -c {}/nginx.conf", here.display());
    let words = [&*server, &server, "-n", "one", "-n", "other", "-c", "4", "--no-why"];
    let out = compare(&folder, &[&words[..], &["--expect", "status=200,length=9"]].concat());
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(run(), before, "the user's folder has changed");
}
