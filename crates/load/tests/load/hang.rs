//! A server that stops after a third of the window, with its connections open: the result is failed, or has
//! the true rate.

use crate::common::{Engine, good_certificates, in_some_try, local, server};
use linerate_contract::{Done, ErrorKind, Event, Layer, Nanos, Role, Spec, Workload, clock};
use nix::sys::signal::Signal;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, listen, socket,
};
use std::os::fd::AsRawFd;
use std::time::Duration;

const WINDOW: Nanos = Nanos(600_000_000);
/// When the server stops.
const STOP: Duration = Duration::from_millis(200);
/// When a busy machine may stop it, from the start of the window: operations have succeeded by then, and
/// [`TIMEOUT`] still ends within the window.
const STOPS: std::ops::Range<Nanos> = Nanos(50_000_000)..Nanos(300_000_000);
/// Shorter than the rest of the window, so that operations also fail within it.
const TIMEOUT: Nanos = Nanos(150_000_000);
const CONNECTIONS: u32 = 3;

/// The result of this client beside a server that is stopped at [`STOP`]. A trial in which the stop came
/// early or late, or did not last, is made again.
fn beside_a_hanging_server(client: &Spec) -> Done {
    for _ in 0..20 {
        let (done, stopped) = stopped_under(client.clone());
        if STOPS.contains(&stopped.since(done.start_ns)) {
            return done;
        }
    }
    panic!(
        "{} {}: no server of 20 was stopped in the first half of its window",
        client.layer, client.workload
    );
}

/// One trial, and when the server was stopped; 0 if it runs again.
fn stopped_under(mut client: Spec) -> (Done, Nanos) {
    let (layer, workload) = (client.layer, client.workload);
    let mut serving = if matches!(layer, Layer::Http | Layer::Https) {
        server(64)
    } else {
        Spec::new(Role::Server, layer, workload)
    };
    serving.layer = layer;
    serving.listen = Some(local());
    serving.size = if layer == Layer::Kcp { 1_000 } else { 64 };
    serving.options = client.options.clone();
    client.size = serving.size;
    client.path = Some("/".into());
    client.connections = CONNECTIONS;
    (client.duration_ns, client.timeout_ns) = (Some(WINDOW), TIMEOUT);
    if layer.has_tls() {
        let (of_server, of_client) = good_certificates();
        (serving.tls, client.tls) = (Some(of_server), Some(of_client));
    }
    let (engine, address) = Engine::serving(&serving);
    client.connect = Some(address);
    // Where there are no samples, the window opens with the process.
    let has_samples = client.rate.is_none()
        && workload != Workload::Fanout
        && (!layer.is_of_datagrams() || workload == Workload::Rr);
    client.sample_ns = has_samples.then_some(Nanos(50_000_000));
    let mut running = Engine::start(&client);
    let mut last = None;
    if has_samples {
        while let Some(event) = running.event() {
            match event {
                Event::Sample(sample) if sample.at_ns.0 >= STOP.as_nanos() as u64 => break,
                Event::Done(done) => last = Some(*done),
                _ => {}
            }
        }
    } else {
        std::thread::sleep(STOP);
    }
    engine.signal(Signal::SIGSTOP);
    let stopped = clock::now();
    while let (None, Some(event)) = (&last, running.event()) {
        if let Event::Done(done) = event {
            last = Some(*done);
        }
    }
    assert!(running.wait().success(), "{layer} {workload}: {}", running.stderr());
    let state = std::fs::read_to_string(format!("/proc/{}/stat", engine.id())).unwrap();
    let stopped = if state.contains(") T ") { stopped } else { Nanos::ZERO };
    (last.unwrap_or_else(|| panic!("{layer} {workload}: the client printed no result")), stopped)
}

#[test]
fn operations_beside_a_hanging_server_have_the_rate_of_the_whole_window_and_end_as_timeouts() {
    let combinations = [
        ("http", "rr"),
        ("http", "crr"),
        ("https", "rr"),
        ("tcp", "rr"),
        ("tcp", "crr"),
        ("tcp", "fanout"),
        ("tls", "rr"),
        ("websocket", "rr"),
        ("wss", "rr"),
        ("udp", "rr"),
    ];
    for (layer, workload) in combinations {
        let done = beside_a_hanging_server(&Spec::new(
            Role::Client,
            layer.parse().unwrap(),
            workload.parse().unwrap(),
        ));
        assert!(done.operations > 0, "{layer} {workload}: {done:?}");
        let timeouts = |kind| done.errors.0.get(&kind).copied().unwrap_or(0);
        let failed = timeouts(ErrorKind::Timeout) + timeouts(ErrorKind::ConnectTimeout);
        assert!(failed > 0, "{layer} {workload}: {:?}", done.errors);
        assert!(done.in_flight > 0, "{layer} {workload}: operations are in flight at the end");
        let elapsed = done.end_ns.since(done.start_ns);
        assert!(elapsed >= WINDOW, "{layer} {workload}: {elapsed:?} is shorter than the window");
        let stall = done.stall_ns.unwrap();
        assert!(stall.0 * 5 > WINDOW.0, "{layer} {workload}: a stall of {stall:?}");
    }
}

#[test]
fn an_open_loop_beside_a_hanging_server_counts_every_operation_that_was_due_in_the_window() {
    let mut client = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    client.rate = Some(1_000.0);
    let done = beside_a_hanging_server(&client);
    assert!(done.end_ns.since(done.start_ns) >= WINDOW);
    assert!(done.errors.total() > 0, "{done:?}");
    let unsent = done.schedule.as_ref().unwrap().unsent;
    assert_eq!(done.operations + done.errors.total() + unsent, 600, "{:?}", done.errors);
}

#[test]
fn streams_to_a_hanging_server_fail_or_last_at_least_as_long_as_the_window() {
    let transfer = Some(100_000);
    let combinations: [(&str, &str, Option<u64>); 9] = [
        ("tcp", "client-writes", None),
        ("tcp", "client-reads", None),
        ("tcp", "client-writes", transfer),
        ("tcp", "both", transfer),
        ("tls", "client-writes", transfer),
        ("websocket", "client-reads", transfer),
        ("wss", "client-writes", transfer),
        ("udp", "client-writes", None),
        ("kcp", "client-writes", None),
    ];
    for (layer, direction, bytes) in combinations {
        let mut client = Spec::new(Role::Client, layer.parse().unwrap(), Workload::Stream);
        client.options.insert("direction".into(), direction.into());
        client.bytes = bytes;
        let done = beside_a_hanging_server(&client);
        let elapsed = done.end_ns.since(done.start_ns);
        assert!(elapsed >= WINDOW, "{layer} {direction}: {elapsed:?} is shorter than the window");
        let stalled = done.stall_ns.is_some_and(|stall| stall.0 * 5 > WINDOW.0);
        assert!(done.errors.total() > 0 || stalled, "{layer} {direction}: {done:?}");
    }
}

#[test]
fn beside_a_healthy_server_a_timed_window_has_its_length_and_nothing_fails() {
    for (layer, workload) in
        [("http", "rr"), ("http", "crr"), ("tcp", "rr"), ("udp", "rr"), ("tcp", "fanout")]
    {
        let mut serving = if layer == "http" {
            server(64)
        } else {
            Spec::new(Role::Server, layer.parse().unwrap(), workload.parse().unwrap())
        };
        (serving.listen, serving.size) = (Some(local()), 64);
        let (_server, address) = Engine::serving(&serving);
        let mut client = Spec::new(Role::Client, layer.parse().unwrap(), workload.parse().unwrap());
        (client.connect, client.path, client.size) = (Some(address), Some("/".into()), 64);
        (client.connections, client.duration_ns) = (CONNECTIONS, Some(Nanos(200_000_000)));
        // A machine that stands still is a stall, too.
        let is_fluent = in_some_try(|| {
            let done = Engine::start(&client).done();
            assert_eq!(done.end_ns.since(done.start_ns), Nanos(200_000_000), "{layer} {workload}");
            assert!(done.in_flight <= u64::from(CONNECTIONS), "{layer} {workload}: {}", done.in_flight);
            assert_eq!(done.errors.total(), 0, "{layer} {workload}: {:?}", done.errors);
            done.stall_ns.unwrap().0 < 100_000_000
        });
        assert!(is_fluent, "{layer} {workload}: a stall in each window");
    }
}

/// The last of three datagrams is due after two thirds of the window.
#[test]
fn a_flow_of_few_datagrams_has_the_window_that_was_asked_for() {
    let mut serving = Spec::new(Role::Server, Layer::Udp, Workload::Stream);
    (serving.listen, serving.size) = (Some(local()), 64);
    let (_server, address) = Engine::serving(&serving);
    let mut client = Spec::new(Role::Client, Layer::Udp, Workload::Stream);
    (client.connect, client.size) = (Some(address), 64);
    (client.rate, client.duration_ns) = (Some(5.0), Some(WINDOW));
    client.options.insert("direction".into(), "client-writes".into());
    // A machine that stands still at the end leaves the last one unsent, or sends it after the window.
    let has_the_window = in_some_try(|| {
        let done = Engine::start(&client).done();
        let (elapsed, unsent) = (done.end_ns.since(done.start_ns), done.schedule.as_ref().unwrap().unsent);
        assert!(elapsed >= WINDOW && done.operations + unsent == 3, "{done:?}");
        elapsed == WINDOW
    });
    assert!(has_the_window);
}

/// A queue of one connection, and a server that accepts none: the kernel drops the others, and tries again
/// after a second.
#[test]
fn with_patience_a_client_neither_waits_for_a_full_queue_before_its_window_nor_for_responses_after_it() {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    listen(&socket, Backlog::new(0).unwrap()).unwrap();
    let address: SockaddrIn = getsockname(socket.as_raw_fd()).unwrap();
    let mut client = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    (client.connect, client.path) = (Some(std::net::SocketAddrV4::from(address).into()), Some("/".into()));
    (client.connections, client.duration_ns) = (CONNECTIONS, Some(Nanos(200_000_000)));
    client.set_option("patience_ms", 50);
    let before = clock::now();
    let done = Engine::start(&client).done();
    let elapsed = clock::now().since(before);
    assert_eq!(done.end_ns.since(done.start_ns), Nanos(200_000_000));
    assert_eq!((done.in_flight, done.errors.total()), (u64::from(CONNECTIONS), 0), "{done:?}");
    assert!(elapsed < client.timeout_ns, "{elapsed:?}: it waited until operations had timed out");
}
