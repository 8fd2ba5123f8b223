//! A server of HTTP/1.1 in Rust with a thread for each connection. PLANT_US: microseconds of `audit_request`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[inline(never)]
fn audit_request(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

fn serve(mut connection: TcpStream, plant: u64) {
    let mut request = [0; 4096];
    while connection.read(&mut request).is_ok_and(|length| length > 0) {
        if plant > 0 {
            audit_request(Duration::from_micros(plant));
        }
        if connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").is_err() {
            return;
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|word| word.parse().ok()).unwrap_or(otherwise)
}

fn main() {
    let listener = TcpListener::bind(("127.0.0.1", number("PORT", 8080) as u16)).unwrap();
    for connection in listener.incoming().flatten() {
        connection.set_nodelay(true).unwrap();
        std::thread::spawn(move || serve(connection, number("PLANT_US", 0)));
    }
}
