//! The map of a JVM's compiled code, which it writes when it is asked.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// As `jcmd PID Compiler.perfmap` sends it: the version of the protocol, the command, three arguments.
const REQUEST: &[u8] = b"1\0jcmd\0Compiler.perfmap\0\0\0";
/// A JVM of the usual size needs some hundredths of a second.
const PATIENCE: Duration = Duration::from_secs(1);
const LONGEST_REPLY: u64 = 64 << 10;

/// Asks for the map through the socket of a JVM. Other processes have none.
pub(super) fn write_map(socket: &str) {
    // A link could lead to a socket of others.
    if !fs::symlink_metadata(socket).is_ok_and(|found| found.file_type().is_socket()) {
        return;
    }
    // Without a map its functions have no names, which a profile shows.
    let _ = ask(socket);
}

fn ask(socket: &str) -> io::Result<()> {
    let mut connection = UnixStream::connect(socket)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    connection.write_all(REQUEST)?;
    connection.take(LONGEST_REPLY).read_to_end(&mut Vec::new()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::thread;

    #[test]
    fn a_jvm_is_asked_through_its_socket_and_its_reply_is_read() {
        let path = format!("{}/jvm-{}", std::env::temp_dir().display(), std::process::id());
        let listener = UnixListener::bind(&path).unwrap();
        let jvm = thread::spawn(move || {
            let mut request = [0; REQUEST.len()];
            let (mut connection, _) = listener.accept().unwrap();
            connection.read_exact(&mut request).unwrap();
            connection.write_all(b"0\n").unwrap();
            request
        });
        write_map(&path);
        fs::remove_file(&path).unwrap();
        assert_eq!(jvm.join().unwrap(), REQUEST);
    }
}
