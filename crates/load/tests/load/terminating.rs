//! TLS in front of servers without it.

use crate::common::local;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A proxy that speaks TLS to clients, and none to the server behind it.
pub(crate) fn terminating(config: Arc<ServerConfig>, server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let secure = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            std::thread::spawn(move || forward(secure, TcpStream::connect(server).unwrap()));
        }
    });
    address
}

/// Until either end closes.
fn forward(mut secure: StreamOwned<ServerConnection, TcpStream>, mut plain: TcpStream) {
    for stream in [&secure.sock, &plain] {
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        stream.set_nodelay(true).unwrap();
    }
    while pass(&mut secure, &mut plain) && pass(&mut plain, &mut secure) {}
}

/// Passes on what has come; false if nothing more will.
fn pass(from: &mut impl Read, to: &mut impl Write) -> bool {
    let mut bytes = [0; 64 << 10];
    match from.read(&mut bytes) {
        Ok(0) => false,
        Ok(count) => to.write_all(&bytes[..count]).is_ok(),
        Err(e) => matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}
