//! The process under attack: what all rows assert.

use crate::common::{Engine, local};
use linerate_contract::{Done, ErrorKind, Layer, Nanos, Role, Spec, Tls, Workload};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The timeout of an operation of a client whose server is hostile.
pub(crate) const TIMEOUT: Nanos = Nanos(300_000_000);
/// A client ends within this time: the timeout, closing handshakes, and a busy machine.
const PROMPT: Duration = Duration::from_secs(12);
/// Longer than connections over QUIC keep their memory once the peer is gone: 30 s, then the end.
const GIVEN_BACK: Duration = Duration::from_secs(45);
/// The most memory of a subject.
pub(crate) const MOST_MEMORY: u64 = 64 << 20;

/// Memory that a server with few connections has, in debug builds, too.
const FEW: u64 = 40 << 20;

/// The spec of a layer. gRPC is an option of HTTP/2.
fn spec(role: Role, layer: &str, workload: &str) -> Spec {
    let mut spec = Spec::new(
        role,
        if layer == "grpc" { Layer::H2c } else { layer.parse().unwrap() },
        workload.parse().unwrap(),
    );
    if layer == "grpc" {
        spec.set_option("grpc", "yes");
    }
    spec
}

/// A client of one operation.
pub(crate) fn client(layer: &str, workload: &str, address: SocketAddr, tls: &Tls) -> Spec {
    let mut spec = spec(Role::Client, layer, workload);
    (spec.connect, spec.tls, spec.timeout_ns) = (Some(address), Some(tls.clone()), TIMEOUT);
    (spec.operations, spec.size) = (Some(1), 1_000);
    spec
}

/// The result of a client, which ends in time and uses little memory.
pub(crate) fn result(spec: &Spec) -> Done {
    let start = Instant::now();
    let mut engine = Engine::start(spec);
    let most = engine.most_memory_until_end();
    let done = engine.done();
    assert!(start.elapsed() < PROMPT, "{:?}: {:?}", start.elapsed(), done.errors);
    assert!(most < MOST_MEMORY, "{} KiB", most >> 10);
    done
}

/// All operations of a client fail, as one of these kinds.
pub(crate) fn fails(spec: &Spec, kinds: &[ErrorKind]) {
    let done = result(spec);
    let found: Vec<_> = done.errors.0.keys().collect();
    assert!(done.operations == 0 && !found.is_empty(), "{} operations, {found:?}", done.operations);
    assert!(found.iter().all(|kind| kinds.contains(kind)), "{found:?} in place of {kinds:?}");
}

/// Both ends of a stream have its direction.
fn options(workload: &str) -> BTreeMap<String, String> {
    let direction = ("direction".to_owned(), "client-writes".to_owned());
    (workload == "stream").then_some(direction).into_iter().collect()
}

/// A server under attack.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    layer: String,
    engine: Engine,
    spec: Spec,
}

impl Served {
    pub(crate) fn start(layer: &str, workload: &str, tls: &Tls) -> Self {
        let mut spec = spec(Role::Server, layer, workload);
        (spec.listen, spec.tls, spec.size) = (Some(local()), Some(tls.clone()), 1_000);
        spec.options.extend(options(workload));
        let (engine, address) = Engine::serving(&spec);
        Self { address, layer: layer.to_owned(), engine, spec }
    }

    /// An honest client completes its work, and the server has used no more than `most` bytes of memory.
    pub(crate) fn still_serves(&mut self, tls: &Tls, most: u64) {
        let mut spec = client(&self.layer, self.spec.workload.as_str(), self.address, tls);
        // Without optimisation, a turn of a flood takes half a second.
        spec.timeout_ns = Nanos(10_000_000_000);
        if spec.workload == Workload::Stream {
            (spec.operations, spec.bytes) = (None, Some(10_000));
            spec.options = options("stream");
        }
        let done = Engine::start(&spec).done();
        assert!(done.operations > 0 && done.errors.total() == 0, "{:?}", done.errors);
        let used = self.engine.most_memory();
        assert!(used > 0 && used < most, "{} KiB", used >> 10);
    }

    /// The memory of connections that have ended is the system's again, within some seconds.
    pub(crate) fn has_given_back(&mut self) {
        let start = Instant::now();
        while self.engine.memory("VmRSS:") > FEW {
            assert!(start.elapsed() < GIVEN_BACK, "{} KiB are kept", self.engine.memory("VmRSS:") >> 10);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Seconds of CPU time that the process has used.
    pub(crate) fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.engine.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        // utime and stime (proc(5)), in hundredths.
        [11, 12].map(|field| fields[field].parse::<f64>().unwrap()).iter().sum::<f64>() / 100.0
    }
}
