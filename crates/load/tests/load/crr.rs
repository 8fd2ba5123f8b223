//! A new connection for each request, as the other end sees it.

use crate::common::{Engine, client, ok, scripted};
use linerate_contract::page;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn each_request_has_a_connection_that_both_ends_close_without_a_reset() {
    let (taken, resets) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counts = (taken.clone(), resets.clone());
    let response =
        String::from_utf8(ok(&page(10))).unwrap().replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let address = scripted(move |mut stream| {
        counts.0.fetch_add(1, Ordering::Relaxed);
        stream.write_all(response.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        if !matches!(stream.read(&mut [0]), Ok(0)) {
            counts.1.fetch_add(1, Ordering::Relaxed);
        }
    });
    let done = Engine::start(&client("crr", address, 10, 300)).done();
    assert_eq!((done.operations, done.errors.total()), (300, 0), "{:?}", done.errors);
    assert_eq!((taken.load(Ordering::Relaxed), resets.load(Ordering::Relaxed)), (300, 0));
}
