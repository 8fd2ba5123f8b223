//! One role of a trial: its spec, its host, and the values in its templates.

use super::Setting;
use crate::lab::protocol::{HostName, address};
use crate::lab::{DOCROOT, SCRATCH};
use crate::measurement::{DEFAULT_BUILD, PlannedSystem, Sharing};
use crate::parameters::Parameters;
use crate::path::{Device, NetworkPath};
use crate::system::{SystemVariant, template};
use linerate_contract::{Arrival, Expect, Layer, Nanos, Role, Spec, Tls, Workload, page};
use linerate_proto::h2::server::rpc_response;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// One worker each: systems are compared on equal CPU, and each has one CPU (docs/method.md).
const WORKERS: u32 = 1;

/// The method that clients of gRPC call; linerate's own server answers to any method.
const METHOD: &str = "/linerate.Bench/Get";

/// Interval of samples: short enough to show a stall, long enough to cost at most a thousandth of a CPU.
const SAMPLES: Nanos = Nanos(100_000_000);

/// The longest transfer of a duet side by side: the last one ends after the window, when the other side may
/// have ended. At 1 GiB/s the round trip at its end is below 5 % of it, and both sides have it.
const LONGEST_TRANSFER: u64 = 2 << 20;
/// The longest transfer in turns, where a side has the CPUs for itself, and no more of them when the other
/// has ended. At the end of a transfer the client waits until the server has processed what is queued: in
/// transfers of 2 MiB, WebSocket++ had four fifths of its rate.
const LONGEST_IN_TURNS: u64 = 32 << 20;

/// A role, and which one of it: a path may have several relays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) role: Role,
    /// Counted from the client, from 0.
    index: usize,
}

impl Seat {
    pub(super) const CLIENT: Self = Self { role: Role::Client, index: 0 };
    pub(super) const SERVER: Self = Self { role: Role::Server, index: 0 };

    pub(super) fn relay(index: usize) -> Self {
        Self { role: Role::Relay, index }
    }

    /// The working folder of the seat.
    pub(super) fn folder(self) -> PathBuf {
        match self.index {
            0 => PathBuf::from(self.role.to_string()),
            index => PathBuf::from(format!("{}-{}", self.role, index + 1)),
        }
    }
}

impl Setting<'_> {
    /// Content of the servers, if the layer has pages.
    pub(super) fn page(&self) -> Option<String> {
        let size = self.cell.parameters.size.unwrap_or(0);
        let page = || page(usize::try_from(size).unwrap_or(usize::MAX));
        self.cell.layer.is_http().then(|| String::from_utf8(page()).expect("pages are ASCII"))
    }

    /// The path between client and server.
    pub(super) fn path(&self) -> NetworkPath {
        let mtu = self.cell.parameters.mtu.and_then(|mtu| u32::try_from(mtu).ok());
        let mut path = self.cell.path.clone();
        if let Some(mtu) = mtu {
            path.links.iter_mut().for_each(|link| link.mtu = mtu);
        }
        path
    }

    pub(super) fn spec(
        &self,
        chosen: SystemVariant<'_>,
        seat: Seat,
        parameters: &Parameters,
        check_every: u64,
    ) -> Spec {
        let role = seat.role;
        let small = |number: Option<u64>| number.and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
        let mut spec = Spec::new(role, self.cell.layer, self.cell.workload);
        spec.size = parameters.size.unwrap_or(0);
        spec.threads = small(parameters.threads);
        spec.sample_ns = self.samples(parameters);
        spec.options = self.cell.options.clone();
        spec.options.extend(chosen.variant.options.clone());
        spec.tls = self.tls_of(role);
        if role == Role::Server && self.relay_ends_tls {
            spec.layer = self.cell.layer.without_tls();
        }
        if self.cell.path.has_tun() {
            spec.options.insert("tun".into(), address::TUN.into());
            spec.options.insert("mtu".into(), self.path().last_mtu().to_string());
        }
        if let Some(transfers) = parameters.transfers {
            spec.set_option("transfers", transfers);
        }
        if let Some(timeout) = parameters.timeout_ms {
            spec.timeout_ns = Nanos(timeout * 1_000_000);
        }
        match role {
            Role::Server => spec.listen = Some(self.addresses.server),
            Role::Relay => {
                spec.layer = Layer::Tcp;
                let [own, next] = self.addresses.of_relay(seat.index);
                (spec.listen, spec.connect) = (Some(own), Some(next));
            }
            Role::Client | Role::Describe => {
                // A workload without a network has no server to connect to.
                let is_served = self.cell.systems.iter().any(|s| s.role == Role::Server);
                let is_served = is_served || self.own.is_some();
                spec.connect = is_served.then_some(self.addresses.target);
                if self.cell.path.device != Device::Loopback && self.context.hosts.is_empty() {
                    spec.sources = address::client_sources().into_iter().map(IpAddr::V4).collect();
                }
                spec.connections = small(parameters.connections);
                spec.bytes = parameters.bytes;
                // A count ends the work, also where a cell that lasts for a time is verified by a count.
                let is_counted = parameters.operations.is_some() || parameters.bytes.is_some();
                let timed = parameters.seconds.filter(|_| !is_counted);
                spec.duration_ns = timed.map(|seconds| Nanos(seconds * 1_000_000_000));
                let counted = spec.bytes.is_none() && timed.is_none();
                spec.operations = parameters.operations.or_else(|| counted.then_some(1));
                spec.rate = timed.and(parameters.rate).map(|rate| rate as f64);
                if spec.rate.is_some() && (self.cell.is_paced_in_turns() || parameters.load.is_some()) {
                    // With even gaps nothing would wait for what came before it.
                    spec.arrival = Arrival::Poisson;
                    // A wake-up would be a part of each latency. Between its turns the client sleeps.
                    if self.pins.has_own(role) {
                        spec.set_option("spin", "always");
                    }
                }
                if let Some(page) = self.page() {
                    let (path, body) = match spec.options.contains_key("grpc") {
                        true => (METHOD, rpc_response(page.as_bytes())),
                        false => ("/", page.into_bytes()),
                    };
                    spec.path = Some(path.into());
                    spec.expect = Some(Expect::of_page(&body, check_every));
                }
                if let Some((server, _)) = self.own {
                    server.ask(&mut spec, check_every);
                }
            }
        }
        spec
    }

    /// A relay that ends TLS has the certificate in place of the server.
    fn tls_of(&self, role: Role) -> Option<Tls> {
        let owner = match role {
            Role::Relay if self.relay_ends_tls => Role::Server,
            Role::Server if self.relay_ends_tls => return None,
            _ => role,
        };
        self.authority.as_ref()?.for_role(owner)
    }

    /// Counted work is repeated until the window is over. In a duet, a stream over TCP in one direction needs
    /// no count; but behind a stack in a process the end of a stream may not reach the server.
    pub(super) fn repeat(&self, spec: &mut Spec, sharing: Option<Sharing>) {
        let options = &self.cell.options;
        let is_plain = self.cell.layer == Layer::Tcp
            && !matches!(self.cell.path.device, Device::Tun | Device::TunPair)
            && options.get("direction").is_some_and(|direction| direction != "both")
            && self.cell.parameters.transfers.is_none_or(|transfers| transfers == 1);
        let is_reliable =
            matches!(self.cell.layer, Layer::Tcp | Layer::Tls) || self.cell.layer.is_websocket();
        let longest = match sharing {
            None => u64::MAX,
            Some(Sharing::Together) => LONGEST_TRANSFER,
            Some(Sharing::Turns | Sharing::Alternating) => LONGEST_IN_TURNS,
        };
        match self.cell.workload {
            Workload::Stream if is_reliable && !(is_plain && sharing.is_some()) => {
                spec.bytes = self.cell.parameters.bytes.map(|bytes| bytes.min(longest));
            }
            Workload::Dispatch => spec.operations = self.cell.parameters.operations,
            _ => {}
        }
    }

    /// Streams by time have samples: both ends print them, and the receiver's are used.
    fn samples(&self, parameters: &Parameters) -> Option<Nanos> {
        (self.cell.workload == Workload::Stream && parameters.seconds.is_some()).then_some(SAMPLES)
    }

    fn system(&self, seat: Seat) -> Option<&PlannedSystem> {
        self.cell.systems.iter().filter(|system| system.role == seat.role).nth(seat.index)
    }

    pub(super) fn build_of(&self, seat: Seat) -> &str {
        self.system(seat).map_or(DEFAULT_BUILD, |system| &system.build)
    }

    pub(super) fn host(&self, seat: Seat) -> HostName {
        let path = &self.cell.path;
        match seat.role {
            Role::Client | Role::Describe => HostName::Client,
            // A single link has no router, so a relay runs on the server's host.
            Role::Relay if seat.index < path.routers() => HostName::router(seat.index),
            // A stack in a process runs in its device's namespace.
            Role::Server if path.device == Device::Tun && path.has_router() => {
                HostName::router(path.routers() - 1)
            }
            Role::Relay | Role::Server => HostName::Server,
        }
    }

    /// The manifest's settings, and in their place those of an arm.
    fn settings<'s>(&'s self, chosen: SystemVariant<'s>, seat: Seat) -> BTreeMap<&'s str, minijinja::Value> {
        let own = chosen.system.manifest.settings.iter();
        let all = own.chain(self.system(seat).into_iter().flat_map(|system| &system.settings));
        all.map(|(name, value)| (name.as_str(), value.into())).collect()
    }

    pub(super) fn values(
        &self,
        chosen: SystemVariant<'_>,
        seat: Seat,
        folder: &Path,
        parameters: &Parameters,
        spec: &Spec,
    ) -> minijinja::Value {
        let scratch = Path::new(SCRATCH);
        let mut values = self.settings(chosen, seat);
        values.extend(parameters.iter().map(|(name, value)| (name, minijinja::Value::from(value))));
        values.insert("dir", scratch.join(folder).display().to_string().into());
        values.insert("docroot", scratch.join(DOCROOT).display().to_string().into());
        values.insert("workers", WORKERS.into());
        if let Some(duration) = spec.duration_ns {
            values.insert("duration", duration.as_secs_f64().into());
        }
        values.insert("spec", spec.to_json().into());
        values.insert("options", minijinja::Value::from_serialize(&spec.options));
        if let Some(tls) = &spec.tls {
            values.insert("tls", minijinja::Value::from_serialize(tls));
        }
        match seat.role {
            Role::Server => {
                values.insert("listen", template::address(self.addresses.server));
            }
            Role::Relay => {
                let [own, next] = self.addresses.of_relay(seat.index);
                values.insert("listen", template::address(own));
                values.insert("upstream", template::address(next));
            }
            Role::Client | Role::Describe => {
                values.insert("connect", template::address(self.addresses.target));
            }
        }
        minijinja::Value::from_serialize(&values)
    }
}
