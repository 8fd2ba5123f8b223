//! A shop's list of items as JSON, a thread for each connection. Its argument is the port.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

fn items() -> String {
    let mut json = String::from("[");
    for id in 1..=20 {
        let comma = if id > 1 { "," } else { "" };
        let price = f64::from(id) * 1.5;
        let _ = write!(json, r#"{comma}{{"id":{id},"name":"item {id}","price":{price}}}"#);
    }
    json + "]"
}

fn serve(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(first) = lines.next().transpose()? {
        // The headers end with an empty line.
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let (status, body) = match first.split(' ').nth(1) {
            Some("/api/items") => ("200 OK", items()),
            _ => ("404 Not Found", String::from("{}")),
        };
        let length = body.len();
        out.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes())?;
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(8080);
    for stream in TcpListener::bind(("127.0.0.1", port))?.incoming() {
        let stream = stream?;
        std::thread::spawn(move || serve(stream));
    }
    Ok(())
}
