//! Client and server on a path of the real lab.

use super::{PathCase, SMALL, Traffic};
use crate::error::Error;
use crate::lab::namespaces::Namespaces;
use crate::lab::program;
use crate::lab::protocol::{HostName, address};
use crate::lab::{Lab, LabError, Label, Launch, Purpose, Ready};
use crate::measurement::{Place, WireCounts};
use crate::path::Means;
use crate::pins;
use linerate_contract::{Done, Event, Layer, Nanos, Role, Spec, Workload};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PORT: u16 = 80;
/// A trial beyond the time of its stream: ten times what it needs.
const PATIENCE: Duration = Duration::from_secs(30);
/// Echoes that a busy machine loses are not repeated; none is.
const ECHO_TIMEOUT: Nanos = Nanos(2_000_000_000);

/// A lab, and the program that runs in it.
#[derive(Debug)]
pub struct Bench {
    lab: Namespaces,
    program: PathBuf,
}

impl Bench {
    /// Raises the lab.
    ///
    /// # Errors
    /// The lab cannot be raised, or `linerate-load` is missing.
    pub fn raise(interrupted: Arc<AtomicBool>) -> Result<Self, Error> {
        let program = program::locate("linerate-load").ok_or_else(|| {
            Error::NothingMeasured("linerate-load is missing: build it with `cargo build --release`".into())
        })?;
        let lab =
            Namespaces::raise(&Place::Lab, interrupted).map_err(|e| Error::NothingMeasured(e.to_string()))?;
        Ok(Self { lab, program })
    }

    /// Measures a case; `None` with the reason if this machine lacks the means.
    ///
    /// # Errors
    /// The trial failed.
    pub fn run(
        &mut self,
        case: &PathCase,
        means: Means,
    ) -> Result<Result<(Done, WireCounts), String>, Error> {
        let label = Label { suite: "selftest".into(), cell: case.name.clone(), round: 1, warmup: false };
        let result = self.trial(case, means, &label);
        let stopped = self.lab.stop();
        match result.and_then(|done| stopped.map(|()| done)) {
            Ok(done) => Ok(Ok(done)),
            Err(LabError::Unsupported(reason)) => Ok(Err(reason)),
            Err(LabError::Interrupted) => Err(Error::Interrupted),
            Err(other) => Err(Error::NothingMeasured(format!("{}: {other}", case.name))),
        }
    }

    fn trial(
        &mut self,
        case: &PathCase,
        means: Means,
        label: &Label,
    ) -> Result<(Done, WireCounts), LabError> {
        self.lab.raise(label, case.path(means), Vec::new())?;
        let [server, client] = [Role::Server, Role::Client].map(|role| self.launch(role, case));
        self.lab.start(&server)?;
        let time = match case.traffic {
            Traffic::Echoes(_) => Duration::ZERO,
            Traffic::Stream { time, .. } => time.into(),
        };
        let run = self.lab.run(&client, Purpose::Measure, time + PATIENCE)?;
        let last = run.stdout.last().map_or("", String::as_str);
        match Event::parse(last) {
            Ok(Event::Done(done)) => {
                let wire = run.record.wires.into_iter().next();
                Ok((*done, wire.ok_or_else(|| LabError::system("the path was not impaired"))?))
            }
            _ => Err(LabError::system(format!("the client printed no result, but {last:?}"))),
        }
    }

    fn launch(&self, role: Role, case: &PathCase) -> Launch {
        let server = SocketAddr::from((address::far(0, true), PORT));
        let workload =
            if matches!(case.traffic, Traffic::Echoes(_)) { Workload::Rr } else { Workload::Stream };
        let mut spec = Spec::new(role, Layer::Udp, workload);
        spec.size = SMALL;
        match case.traffic {
            Traffic::Echoes(count) => {
                spec.timeout_ns = ECHO_TIMEOUT;
                spec.operations = (role == Role::Client).then_some(count);
            }
            Traffic::Stream { per_second, size, time } => {
                spec.size = size;
                spec.set_option("direction", "client-writes");
                spec.set_option("buffer", 4 << 20);
                if role == Role::Client {
                    (spec.rate, spec.duration_ns) = (Some(per_second), Some(time));
                }
            }
        }
        match role {
            Role::Client => {
                spec.connect = Some(server);
                spec.sources = vec![IpAddr::V4(address::CLIENT)];
            }
            _ => spec.listen = Some(server),
        }
        let cpus = self.lab.cpus();
        Launch {
            role,
            system: "native".into(),
            host: if role == Role::Client { HostName::Client } else { HostName::Server },
            folder: PathBuf::from(role.to_string()),
            process: Some((self.program.clone(), vec![spec.to_json()])),
            ready: Ready::Event,
            port: PORT,
            cpus: pins::assign(&cpus, &[Role::Client, Role::Server], 1).cpus[&role].clone(),
            own_session: true,
            ..Launch::default()
        }
    }
}
