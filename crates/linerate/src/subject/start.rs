//! A command is started: its companions, itself, and where it listens.

use super::{Servers, ready};
use crate::error::Error;
use crate::lab::namespaces::READY_DEADLINE;
use crate::lab::pair::SLICE;
use crate::lab::protocol::HostName;
use crate::lab::{ClientRun, CommandLine, Lab, LabError, Label, Launch, Purpose, Ready};
use crate::measurement::PlannedLoad;
use crate::path::Shape;
use crate::pins::{self, Pins};
use linerate_contract::Role;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// After the first listener, others may follow within this time.
const SETTLE: Duration = Duration::from_millis(100);
/// Between two questions to a server that is not ready.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// Starts of a server that may fail before another one.
const MOST_FAILED_STARTS: usize = 2;
/// The longest wait for the requests of one client.
const DEADLINE: Duration = Duration::from_secs(30);

/// The common part of all starts of a run's servers.
pub(super) struct Starter {
    pins: Pins,
}

impl Starter {
    pub(super) fn new(cpus: &[u32], load: &PlannedLoad) -> Self {
        Self { pins: pins::assign(cpus, &[Role::Client, Role::Server], load.threads as usize) }
    }

    /// Starts the upstream alone; where it listens.
    pub(super) fn upstream(&self, lab: &mut dyn Lab, servers: &Servers) -> Result<SocketAddr, Error> {
        let name = "the upstream";
        let failed = |error| of_lab(name, error);
        lab.raise(&label(name), Shape::Loopback.into(), Vec::new()).map_err(failed)?;
        if let Some(upstream) = servers.upstream(&self.pins, SLICE) {
            lab.start(&upstream).map_err(failed)?;
        }
        let all = settled(lab, &servers.load, name, &[])?;
        chosen(&all, name, &servers.load, None)
    }

    /// Starts a server with its companions on one side of a pair, again if that fails; where it is reached.
    pub(super) fn server(
        &self,
        lab: &mut dyn Lab,
        servers: &Servers,
        index: usize,
        side: usize,
    ) -> Result<Option<SocketAddr>, Error> {
        let mut failed = 0;
        loop {
            let begin = Instant::now();
            match self.once(lab, servers, index, side) {
                Err(Error::NothingMeasured(_))
                    if failed < MOST_FAILED_STARTS && begin.elapsed() < ready_within(&servers.load) =>
                {
                    failed += 1;
                }
                started => return started,
            }
        }
    }

    fn once(
        &self,
        lab: &mut dyn Lab,
        servers: &Servers,
        index: usize,
        side: usize,
    ) -> Result<Option<SocketAddr>, Error> {
        let (server, load) = (servers.server(index), &servers.load);
        let name = server.subject().name();
        let failed = |error| of_lab(name, error);
        lab.raise(&label(name), Shape::Loopback.into(), Vec::new()).map_err(failed)?;
        let Some(launch) = server.launch(&self.pins, Some(SLICE), side) else {
            return Ok(server.address(side));
        };
        for companion in servers.companions(&launch, server.given_port(side)) {
            lab.start(&companion).map_err(failed)?;
        }
        let port = server.given_port(side);
        let of_companions = lab.listeners(ready(load)).map_err(failed)?;
        lab.start(&launch).map_err(|error| of_start(name, error, port))?;
        let all = settled(lab, load, name, &of_companions)?;
        if all.is_empty() {
            // It has ended, and the run of any client says how.
            self.run(lab, name, (PathBuf::from("/bin/true"), Vec::new()))?;
            return Err(Error::NothingMeasured(format!("{name} does not listen any more")));
        }
        chosen(&all, name, load, port).map(Some)
    }

    pub(super) fn run(
        &self,
        lab: &mut dyn Lab,
        name: &str,
        process: CommandLine,
    ) -> Result<ClientRun, Error> {
        let role = Role::Client;
        let client = Launch {
            role,
            // What ends it is no fault of the server.
            system: format!("the client of {name}"),
            host: HostName::Server,
            folder: PathBuf::from(role.to_string()),
            process: Some(process),
            ready: Ready::Event,
            cpus: self.pins.cpus.get(&role).cloned().unwrap_or_default(),
            own_session: self.pins.has_own(role),
            // Two of them are loaded side by side.
            slice: Some(SLICE),
            ..Launch::default()
        };
        lab.run(&client, Purpose::Verify, DEADLINE).map_err(|error| of_lab(name, error))
    }
}

/// How long a server may take until its first expected response.
pub(super) fn ready_within(load: &PlannedLoad) -> Duration {
    load.ready.map_or(READY_DEADLINE, Duration::from)
}

/// Does `ask` until it says that a server is ready, within this time; then whatever it is.
pub(super) fn until_ready<T>(
    lab: &mut dyn Lab,
    within: Duration,
    ask: impl Fn(&mut dyn Lab) -> Result<(T, bool), Error>,
) -> Result<T, Error> {
    let (begin, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        match ask(lab) {
            Ok((response, true)) => return Ok(response),
            Ok(_) if begin.elapsed() < within && lab.is_running() => {
                sleep(pause);
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
            answered => return answered.map(|(response, _)| response),
        }
    }
}

/// The listeners of a server that was started, once none is to be expected any more.
fn settled(
    lab: &mut dyn Lab,
    load: &PlannedLoad,
    name: &str,
    of_others: &[SocketAddr],
) -> Result<Vec<SocketAddr>, Error> {
    sleep(SETTLE);
    let mut all = lab.listeners(ready(load)).map_err(|error| of_lab(name, error))?;
    all.retain(|address| !of_others.contains(address));
    all.sort_by_key(|address| (address.port(), address.is_ipv6()));
    all.dedup_by_key(|address| address.port());
    Ok(all)
}

/// The listener that is measured, as a client reaches it. `given`: the port that it had to listen on.
fn chosen(
    all: &[SocketAddr],
    name: &str,
    load: &PlannedLoad,
    given: Option<u16>,
) -> Result<SocketAddr, Error> {
    let (port, is_given) = (given.unwrap_or(load.port), load.port_is_given || given.is_some());
    let chosen = match (all, all.iter().find(|address| address.port() == port)) {
        (_, Some(address)) => *address,
        (_, None) if is_given => {
            return Err(Error::Input(format!(
                "{name} does not listen on --port {port}, but on {}",
                ports(all)
            )));
        }
        ([one], None) => *one,
        (several, None) => {
            let first = several.first().map_or(0, SocketAddr::port);
            return Err(Error::Input(format!(
                "{name} listens on several ports ({}): name the one to measure, such as --port {first}",
                ports(several)
            )));
        }
    };
    let ip = match chosen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // A socket of both protocols has an address of each, and that of IPv4 is first.
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    Ok(SocketAddr::new(ip, chosen.port()))
}

fn ports(listeners: &[SocketAddr]) -> String {
    listeners.iter().map(|address| address.port().to_string()).collect::<Vec<_>>().join(", ")
}

fn label(name: &str) -> Label {
    Label { suite: "commands".into(), cell: name.into(), round: 0, warmup: true }
}

/// The error of a server that was not ready.
fn of_start(name: &str, error: LabError, port: Option<u16>) -> Error {
    match (of_lab(name, error), port) {
        (Error::NothingMeasured(reason), Some(port)) => Error::NothingMeasured(format!(
            "{reason}\nwith --network host it has to listen on {{port}}, which is also PORT: here {port}"
        )),
        (error, _) => error,
    }
}

/// The error of a lab, with the last lines that the server printed.
pub(super) fn of_lab(name: &str, error: LabError) -> Error {
    match error {
        LabError::Interrupted => Error::Interrupted,
        LabError::System { reason, log } => {
            let log: String = log.lines().map(|line| format!("\n  {line}")).collect();
            Error::NothingMeasured(format!("{reason}{log}"))
        }
        other => Error::NothingMeasured(format!("{name}: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::BrakeForce;
    use crate::lab::protocol::{File, Turns};
    use crate::measurement::{Host, Usage};
    use crate::path::NetworkPath;
    use linerate_contract::Nanos;

    /// A lab whose processes end by a signal, and are named as the real one names them.
    #[derive(Debug)]
    struct Killing;

    impl Lab for Killing {
        fn run(&mut self, launch: &Launch, _: Purpose, _: Duration) -> Result<ClientRun, LabError> {
            let reason = format!("{} ended (signal 9)", launch.system);
            Err(LabError::System { reason, log: "out of memory".into() })
        }

        fn host(&self) -> Host {
            unreachable!()
        }

        fn is_grouped(&self) -> bool {
            unreachable!()
        }

        fn cpus(&self) -> Vec<u32> {
            unreachable!()
        }

        fn now(&self) -> Nanos {
            unreachable!()
        }

        fn raise(&mut self, _: &Label, _: NetworkPath, _: Vec<File>) -> Result<(), LabError> {
            unreachable!()
        }

        fn start(&mut self, _: &Launch) -> Result<Nanos, LabError> {
            unreachable!()
        }

        fn listeners(&mut self, _: Ready) -> Result<Vec<SocketAddr>, LabError> {
            unreachable!()
        }

        fn usage(&mut self) -> Result<Option<Usage>, LabError> {
            unreachable!()
        }

        fn take_turns(&mut self, _: Turns) {}

        fn brake(&mut self, _: BrakeForce) {}

        fn stop(&mut self) -> Result<(), LabError> {
            unreachable!()
        }
    }

    #[test]
    fn the_end_of_a_client_is_not_that_of_its_server() {
        let load = PlannedLoad { threads: 1, ..PlannedLoad::default() };
        let starter = Starter::new(&[0, 1], &load);
        let asked = starter.run(&mut Killing, "./shop", (PathBuf::from("/bin/true"), Vec::new()));
        let error = asked.unwrap_err().to_string();
        assert!(error.contains("the client of ./shop ended (signal 9)\n  out of memory"), "{error}");
    }
}
