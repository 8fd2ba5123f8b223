//! Other programs that serve a page, as far as they are installed.

use crate::common::{certificates, local};
use linerate_contract::{Tls, page};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes of the page.
pub(crate) const SIZE: usize = 4_096;

/// A folder with a page and certificates, and what is started in it.
pub(crate) struct Stage {
    pub(crate) folder: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) trust: Tls,
    child: Option<Child>,
}

impl Stage {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("linerate-other-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (own, trust) = certificates("linerate.test", 4000);
        fs::write(folder.join("page"), page(SIZE)).unwrap();
        fs::write(folder.join("key.pem"), own.key).unwrap();
        fs::write(folder.join("cert.pem"), own.certificate).unwrap();
        // Released at once: the program binds it again.
        let address = TcpListener::bind(local()).unwrap().local_addr().unwrap();
        Self { folder, address, trust, child: None }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Over TCP.
    pub(crate) fn listens(&self) -> bool {
        TcpStream::connect(self.address).is_ok()
    }

    /// Starts the program, and waits until it serves; false if it is not installed.
    pub(crate) fn start(&mut self, command: &mut Command, serves: impl Fn(&Self) -> bool) -> bool {
        let name = command.get_program().to_string_lossy().into_owned();
        match command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn() {
            Ok(child) => self.child = Some(child),
            Err(error) => {
                eprintln!("skipped: {name}: {error}");
                return false;
            }
        }
        let start = Instant::now();
        while !serves(self) {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none() && start.elapsed() < Duration::from_secs(20), "{name}: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // nginx ends its workers with SIGTERM alone.
            let _ = nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(child.id() as i32),
                nix::sys::signal::Signal::SIGTERM,
            );
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
