//! A connection of HTTP/3.

use crate::endpoint::Service;
use quiche::Connection;
use quiche::h3::{self, Config, Error, Event, Header};
use std::collections::HashMap;
use std::rc::Rc;

pub struct Pages {
    page: Rc<[u8]>,
    settings: Rc<Config>,
    /// From the end of the handshake on.
    http: Option<h3::Connection>,
    responses: HashMap<u64, Response>,
    headers: [Header; 3],
}

/// The progress of a response that is being sent.
#[derive(Default)]
struct Response {
    has_headers: bool,
    body: usize,
}

impl Pages {
    pub fn new(page: Rc<[u8]>, settings: Rc<Config>) -> Self {
        let length = page.len().to_string();
        let headers = [
            Header::new(b":status", b"200"),
            Header::new(b"content-type", b"text/plain"),
            Header::new(b"content-length", length.as_bytes()),
        ];
        Self { page, settings, http: None, responses: HashMap::new(), headers }
    }
}

impl Service for Pages {
    fn turn(&mut self, connection: &mut Connection) -> Result<(), Error> {
        if self.http.is_none() && connection.is_established() {
            self.http = Some(h3::Connection::with_transport(connection, &self.settings)?);
        }
        let Some(http) = &mut self.http else { return Ok(()) };
        loop {
            match http.poll(connection) {
                Ok((id, Event::Finished)) => drop(self.responses.insert(id, Response::default())),
                Ok((id, Event::Data)) => while http.recv_body(connection, id, &mut [0; 4096]).is_ok() {},
                Ok(_) => {}
                Err(Error::Done) => break,
                Err(error) => return Err(error),
            }
        }
        let Self { page, responses, headers, .. } = self;
        responses.retain(|id, response| !response.is_sent(http, connection, *id, headers, page));
        Ok(())
    }
}

impl Response {
    /// Sends what the stream has room for. True at the end, and where the peer has given the stream up.
    fn is_sent(
        &mut self,
        http: &mut h3::Connection,
        connection: &mut Connection,
        id: u64,
        headers: &[Header],
        page: &[u8],
    ) -> bool {
        if !self.has_headers {
            match http.send_response(connection, id, headers, page.is_empty()) {
                Ok(()) => self.has_headers = true,
                Err(Error::StreamBlocked) => return false,
                Err(_) => return true,
            }
        }
        while self.body < page.len() {
            match http.send_body(connection, id, &page[self.body..], true) {
                Ok(sent) => self.body += sent,
                Err(Error::Done) => return false,
                Err(_) => return true,
            }
        }
        true
    }
}
