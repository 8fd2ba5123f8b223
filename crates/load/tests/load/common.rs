//! Shared by the integration tests: the binary as a child that ends with its test, and faulty servers.

use linerate_contract::{
    Done, ErrorKind, Event, Expect, Layer, Nanos, Role, Sample, Spec, Tls, TlsFailure, Workload, page,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes, so that a hang is a failure with a name.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A window that a signal ends, and else a test that has failed.
pub(crate) const LONG: Nanos = Nanos(PATIENCE.as_nanos() as u64);

/// A running program; killed when dropped.
pub(crate) struct Engine {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Engine {
    pub(crate) fn start(spec: &Spec) -> Self {
        Self::start_json(&spec.to_json())
    }

    pub(crate) fn start_json(json: &str) -> Self {
        Self::start_command(Command::new(crate::PROGRAM).arg(json))
    }

    pub(crate) fn start_command(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// A server or relay, and the address it is ready at.
    pub(crate) fn serving(spec: &Spec) -> (Self, SocketAddr) {
        Self::ready(Self::start(spec))
    }

    /// Waits until it is ready.
    pub(crate) fn ready(mut engine: Self) -> (Self, SocketAddr) {
        match engine.event() {
            Some(Event::Ready { address }) => (engine, address),
            other => panic!("{other:?} instead of ready: {}", engine.stderr()),
        }
    }

    /// The most memory that it has used so far, in bytes; 0 after its end.
    pub(crate) fn most_memory(&mut self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Memory by its name in /proc/PID/status, in bytes. In the middle of its execve(2) a process still has
    /// the name and the memory of the test, and has none here.
    pub(crate) fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        if !status.starts_with("Name:\tlinerate-") {
            return 0;
        }
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
    }

    /// Waits for the end; returns the most memory that it used, by looks every few milliseconds.
    pub(crate) fn most_memory_until_end(&mut self) -> u64 {
        let (start, mut most) = (Instant::now(), 0);
        while self.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < PATIENCE, "still running");
            most = most.max(self.most_memory());
            std::thread::sleep(Duration::from_millis(5));
        }
        most
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn event(&mut self) -> Option<Event> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| Event::parse(&line).unwrap())
    }

    /// Waits until a sample of a client or a receiver says that operations have succeeded or bytes arrived.
    pub(crate) fn under_way(&mut self) {
        self.until_sample(|sample| sample.operations > 0 || sample.bytes.0 > 0);
    }

    /// Waits for a sample that is like this.
    pub(crate) fn until_sample(&mut self, is_it: impl Fn(&Sample) -> bool) {
        let start = Instant::now();
        loop {
            match self.event() {
                Some(Event::Sample(sample)) if is_it(&sample) => return,
                Some(Event::Sample(last)) => assert!(start.elapsed() < PATIENCE, "the last sample: {last:?}"),
                other => panic!("{other:?} in place of a sample: {}", self.stderr()),
            }
        }
    }

    /// Waits for the end of a client and gives its account; samples are left out.
    pub(crate) fn done(mut self) -> Done {
        let event = loop {
            match self.event() {
                Some(Event::Sample(_)) => {}
                other => break other,
            }
        };
        let status = self.wait();
        match event {
            Some(Event::Done(done)) if status.success() => *done,
            other => panic!("{other:?}, {status}: {}", self.stderr()),
        }
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "still running");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn stderr(&mut self) -> String {
        let _ = self.child.kill();
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.id() as i32), signal).unwrap();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether something holds in one try of a few: a machine that stands still may break a try, and faulty code
/// breaks each.
pub(crate) fn in_some_try(holds: impl FnMut() -> bool) -> bool {
    std::iter::repeat_with(holds).take(5).any(|held| held)
}

/// Checks that each of this many operations times out; now and then with its connection, where the machine
/// stands still.
pub(crate) fn assert_times_out(spec: &Spec, operations: u64) {
    let has_connected = in_some_try(|| {
        let done = Engine::start(spec).done();
        let late =
            [ErrorKind::Timeout, ErrorKind::ConnectTimeout].map(|kind| done.errors.0.get(&kind).copied());
        let failed: u64 = late.iter().flatten().sum();
        assert_eq!((done.operations, failed, done.errors.total()), (0, operations, operations), "{late:?}");
        late[0] == Some(operations)
    });
    assert!(has_connected, "{} {}: connections that time out", spec.layer, spec.workload);
}

/// The kind of the first handshake that failed.
pub(crate) fn tls_failure(done: &Done) -> Option<TlsFailure> {
    done.causes.0.get(&ErrorKind::TlsFailed)?.tls
}

/// A client of `address` that expects the page of `size` bytes and checks every byte.
pub(crate) fn client(workload: &str, address: SocketAddr, size: usize, operations: u64) -> Spec {
    let mut spec = Spec::new(Role::Client, Layer::Http, workload.parse().unwrap());
    spec.connect = Some(address);
    spec.operations = Some(operations);
    spec.connections = 5;
    spec.expect = Some(Expect::of_page(&page(size), 1));
    spec
}

/// A TCP client of messages or writes of `size` bytes.
pub(crate) fn tcp_client(workload: &str, address: SocketAddr, size: u64, operations: u64) -> Spec {
    let mut spec = Spec::new(Role::Client, Layer::Tcp, workload.parse().unwrap());
    (spec.connect, spec.size, spec.operations) = (Some(address), size, Some(operations));
    spec
}

/// The spec with one more option.
pub(crate) fn with(mut spec: Spec, option: &str, value: &str) -> Spec {
    spec.options.insert(option.into(), value.into());
    spec
}

pub(crate) fn server(size: usize) -> Spec {
    let mut spec = Spec::new(Role::Server, Layer::Http, Workload::Rr);
    spec.listen = Some(local());
    spec.size = size as u64;
    spec
}

pub(crate) fn local() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A port without a listener: it was just released.
pub(crate) fn dead_port() -> SocketAddr {
    TcpListener::bind(local()).unwrap().local_addr().unwrap()
}

/// A server that lets `behave` deal with each connection, in a thread each, once its request is read.
pub(crate) fn scripted(behave: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let behave = std::sync::Arc::new(behave);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let behave = behave.clone();
            std::thread::spawn(move || {
                let mut stream = stream;
                if read_request(&mut stream) {
                    behave(stream);
                }
            });
        }
    });
    address
}

/// Reads up to the empty line; false if the peer closes before.
pub(crate) fn read_request(stream: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => request.push(byte[0]),
            _ => return false,
        }
    }
    true
}

/// A server that answers each request with `response` and closes.
pub(crate) fn answering(response: impl Into<Vec<u8>>) -> SocketAddr {
    let response = response.into();
    scripted(move |mut stream| {
        let _ = stream.write_all(&response);
    })
}

/// A whole response with this body.
pub(crate) fn ok(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// The certificate of a server, and the trust of a client.
pub(crate) fn certificates(name: &str, last_year: i32) -> (Tls, Tls) {
    let mut issuer = CertificateParams::new([]).unwrap();
    issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(issuer, KeyPair::generate().unwrap()).unwrap();
    let mut leaf = CertificateParams::new([name.to_owned()]).unwrap();
    (leaf.not_before, leaf.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(last_year, 1, 1));
    let key = KeyPair::generate().unwrap();
    let certificate = leaf.signed_by(&key, &issuer).unwrap().pem();
    let server = Tls { certificate, key: key.serialize_pem(), ..Tls::default() };
    let client = Tls { authority: issuer.pem(), name: "linerate.test".into(), ..Tls::default() };
    (server, client)
}

pub(crate) fn good_certificates() -> (Tls, Tls) {
    certificates("linerate.test", 4000)
}
