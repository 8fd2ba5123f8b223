//! The lab of the tests: every response comes from a file, time is simulated, no process is started.
//!
//! All of linerate above the lab runs on it as on the real one, so the whole tool can be tested with golden
//! output and without a network. A report of such a run is recognisable: its host is the script's.

use crate::protocol::{CpuTime, CpuTimes, ExitStatus, File, Turns, WindowRecord};
use crate::{BrakeForce, ClientRun, Lab, LabError, Label, Launch, Purpose, Ready, Written};
use globset::{Glob, GlobMatcher};
use linerate_contract::{Bytes, Done, Errors, Event, Nanos, Recorder, Role, Spec};
use linerate_model::path::NetworkPath;
use linerate_model::{Host, Stage, Usage, WireCounts};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file: versions of systems, and responses; the first response that matches a trial applies.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    host: ScriptedHost,
    /// Version by variant, or by `variant@build`; other variants are missing. An empty version: nothing to
    /// start.
    systems: BTreeMap<String, String>,
    /// The number of the trial that is interrupted, counted from 1.
    interrupt_at: Option<u64>,
    /// The number of the trial in which the lab ends.
    lost_at: Option<u64>,
    responses: Vec<Response>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedHost {
    #[serde(default)]
    name: String,
    kernel: String,
    cpu_model: String,
    cpus: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    /// A glob over cell ids.
    cell: String,
    /// Seconds of the measurement, by round; repeated from the start after the last.
    #[serde(default)]
    seconds: Vec<f64>,
    #[serde(default)]
    errors: Errors,
    /// Bytes of a stream that do not arrive.
    #[serde(default)]
    missing_bytes: u64,
    /// CPU seconds of each role.
    #[serde(default)]
    cpu: BTreeMap<Role, f64>,
    /// The share of each CPU's time that processes other than this side's use: in a duet the other side too.
    #[serde(default)]
    others: f64,
    /// The share of each CPU's time that the hypervisor gives to other guests.
    #[serde(default)]
    steal: f64,
    /// The sensitivity of the rate to the CPU time of each role; 0 for others.
    #[serde(default)]
    sensitivity: BTreeMap<Role, f64>,
    /// The server's resource usage before and after the measurement.
    usage: Option<[Usage; 2]>,
    /// The output of a foreign client; `@seconds@` and `@operations@` are replaced.
    stdout: Option<String>,
    /// The lines that each system writes on stderr before it is ready.
    #[serde(default)]
    stderr: Vec<String>,
    /// The lab's own remarks about each system.
    #[serde(default)]
    remarks: Vec<String>,
    /// The stage that fails, with reason and log.
    fails: Option<Fails>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fails {
    stage: Stage,
    reason: String,
    #[serde(default)]
    log: String,
    /// Only in these rounds; empty: in all.
    #[serde(default)]
    rounds: Vec<u32>,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    globs: Vec<GlobMatcher>,
    label: Option<Label>,
    /// The counts of the trial's impaired links.
    wires: Vec<WireCounts>,
    written: Vec<Written>,
    /// True after the trial's measurement.
    measured: bool,
    /// The brake of the next measurement.
    brake: Option<BrakeForce>,
    trials: u64,
    clock: Nanos,
}

/// The duration of each stage of a scripted trial.
const STAGE: Nanos = Nanos(10_000_000);

impl Scripted {
    /// Reads a script.
    ///
    /// # Errors
    /// The file cannot be read or is not a valid script; with the place.
    pub fn load(path: &Path) -> Result<Self, String> {
        let invalid = |e: &dyn std::fmt::Display| format!("{}: {}", path.display(), e.to_string().trim_end());
        let text = std::fs::read_to_string(path).map_err(|e| invalid(&e))?;
        let script: Script = toml::from_str(&text).map_err(|e| invalid(&e))?;
        let globs = script.responses.iter().map(|a| Ok(Glob::new(&a.cell)?.compile_matcher()));
        let globs = globs.collect::<Result<_, globset::Error>>().map_err(|e| invalid(&e))?;
        Ok(Self {
            script,
            globs,
            label: None,
            wires: Vec::new(),
            written: Vec::new(),
            measured: false,
            brake: None,
            trials: 0,
            clock: Nanos::ZERO,
        })
    }

    /// Path and version of a variant's program, with an empty version if nothing is started; `None`: there is
    /// no such variant in the script.
    pub fn program(&self, variant: &str, build: &str) -> Option<(PathBuf, &str)> {
        let systems = &self.script.systems;
        let own = systems.get_key_value(&format!("{variant}@{build}"));
        let (name, version) = own.or_else(|| systems.get_key_value(variant))?;
        Some((Path::new("/scripted").join(name), version))
    }

    fn response(&self) -> Result<(&Response, &Label), LabError> {
        let label = self.label.as_ref().ok_or_else(|| LabError::Lost("no topology is raised".into()))?;
        let index = self.globs.iter().position(|glob| glob.is_match(&label.cell));
        let index =
            index.ok_or_else(|| LabError::Lost(format!("the script has no response for {}", label.cell)))?;
        Ok((&self.script.responses[index], label))
    }

    fn fail_at(&mut self, stage: Stage) -> Result<(), LabError> {
        self.clock += STAGE;
        let (response, label) = self.response()?;
        match &response.fails {
            Some(f) if f.stage == stage && (f.rounds.is_empty() || f.rounds.contains(&label.round)) => {
                Err(LabError::System { reason: f.reason.clone(), log: f.log.clone() })
            }
            _ => Ok(()),
        }
    }

    fn client_run(&self, seconds: f64, stdout: String) -> Result<ClientRun, LabError> {
        let (response, _) = self.response()?;
        let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
        let own = response.cpu.values().sum::<f64>() / f64::from(self.script.host.cpus);
        let cpus = (0..self.script.host.cpus).map(|cpu| CpuTime {
            cpu,
            total: nanos(seconds),
            busy: nanos((own + response.others * seconds).min(seconds)),
            interrupts: Nanos::ZERO,
            steal: nanos(response.steal * seconds),
        });
        Ok(ClientRun {
            status: ExitStatus::Code(0),
            stdout: stdout.lines().map(str::to_owned).collect(),
            stderr: Vec::new(),
            server_stdout: Vec::new(),
            cpu: response.cpu.iter().map(|(role, seconds)| (*role, nanos(*seconds))).collect(),
            record: WindowRecord {
                before: CpuTimes {
                    cpus: self.cpus().into_iter().map(|cpu| CpuTime { cpu, ..CpuTime::default() }).collect(),
                    ..CpuTimes::default()
                },
                after: CpuTimes { cpus: cpus.collect(), ..CpuTimes::default() },
                running: 1.0,
                wires: self.wires.clone(),
                progress: Vec::new(),
                counts: BTreeMap::new(),
                sample: None,
            },
            window: nanos(seconds),
            brake: None,
            others: None,
            peak_memory: None,
            flags: Vec::new(),
        })
    }
}

impl Lab for Scripted {
    fn host(&self) -> Host {
        let host = &self.script.host;
        Host {
            name: host.name.clone(),
            kernel: host.kernel.clone(),
            cpu_model: host.cpu_model.clone(),
            cpus: host.cpus,
            privileges: "scripted".into(),
            ..Host::default()
        }
    }

    fn is_grouped(&self) -> bool {
        true
    }

    fn cpus(&self) -> Vec<u32> {
        (0..self.script.host.cpus).collect()
    }

    fn now(&self) -> Nanos {
        self.clock
    }

    fn raise(&mut self, label: &Label, path: NetworkPath, _files: Vec<File>) -> Result<(), LabError> {
        let impaired = path.links.iter().zip(1..).filter(|(link, _)| link.is_impaired());
        let counts = |link| WireCounts { link, means: "scripted".into(), ..WireCounts::default() };
        self.wires = impaired.map(|(_, number)| counts(number)).collect();
        self.trials += 1;
        if self.script.interrupt_at == Some(self.trials) {
            return Err(LabError::Interrupted);
        }
        if self.script.lost_at == Some(self.trials) {
            return Err(LabError::Lost("the lab has ended: scripted".into()));
        }
        (self.label, self.measured) = (Some(label.clone()), false);
        self.written.clear();
        self.fail_at(Stage::Raise)
    }

    fn start(&mut self, launch: &Launch) -> Result<Nanos, LabError> {
        self.fail_at(Stage::Start)?;
        let Response { remarks, stderr, .. } = self.response()?.0.clone();
        for (lines, is_of_lab) in [(remarks, true), (stderr, false)] {
            let written = Written { role: launch.role, system: launch.system.clone(), lines, is_of_lab };
            self.written.extend((!written.lines.is_empty()).then_some(written));
        }
        Ok(STAGE)
    }

    fn written(&self) -> Vec<Written> {
        self.written.clone()
    }

    fn listeners(&mut self, _ready: Ready) -> Result<Vec<SocketAddr>, LabError> {
        Ok(Vec::new())
    }

    fn run(&mut self, launch: &Launch, purpose: Purpose, _deadline: Duration) -> Result<ClientRun, LabError> {
        let spec =
            launch.process.as_ref().and_then(|(_, arguments)| arguments.first().cloned()).unwrap_or_default();
        let spec = Spec::parse(&spec);
        if purpose == Purpose::Verify {
            self.fail_at(Stage::Verify)?;
            let operations = spec.as_ref().ok().and_then(|spec| spec.operations).unwrap_or(0);
            let bytes = Bytes(spec.as_ref().ok().and_then(stream_bytes).unwrap_or(0));
            let done = Done { operations, bytes, verified: operations, end_ns: STAGE, ..Done::default() };
            return self.client_run(0.0, Event::Done(Box::new(done)).to_json());
        }
        self.fail_at(Stage::Measure)?;
        let (response, label) = self.response()?;
        let round = label.round.saturating_sub(1) as usize;
        let seconds = response.seconds.get(round % response.seconds.len().max(1)).copied().unwrap_or(1.0);
        let seconds = seconds * self.brake.map_or(1.0, |brake| slower(brake, response));
        let brake = self.brake.map(|brake| (brake.role, brake_time(brake, response)));
        let mut elapsed = Nanos((seconds * 1e9) as u64);
        let spec = spec.map(|spec| match spec.duration_ns {
            Some(window) => {
                let counted = counted(spec, window.as_secs_f64() / seconds);
                elapsed = window;
                counted
            }
            None => spec,
        });
        let stdout = match (&response.stdout, &spec) {
            (Some(text), _) => {
                let operations = launch
                    .process
                    .iter()
                    .flat_map(|(_, a)| a)
                    .find_map(|a| a.parse::<u64>().ok())
                    .unwrap_or(0);
                text.replace("@seconds@", &format!("{seconds:.3}"))
                    .replace("@operations@", &operations.to_string())
            }
            (None, Ok(spec)) => Event::Done(Box::new(done(spec, elapsed, seconds, response))).to_json(),
            (None, Err(e)) => {
                return Err(LabError::system(format!("the script has no stdout for a foreign client: {e}")));
            }
        };
        self.clock += elapsed;
        self.measured = true;
        self.brake = None;
        Ok(ClientRun { brake, ..self.client_run(seconds, stdout)? })
    }

    fn usage(&mut self) -> Result<Option<Usage>, LabError> {
        let (response, _) = self.response()?;
        Ok(response.usage.map(|[before, after]| if self.measured { after } else { before }))
    }

    fn take_turns(&mut self, _turns: Turns) {}

    fn brake(&mut self, force: BrakeForce) {
        self.brake = Some(force);
    }

    fn stop(&mut self) -> Result<(), LabError> {
        self.clock += STAGE;
        self.label = None;
        Ok(())
    }
}

/// The factor by which operations take longer with a brake.
fn slower(brake: BrakeForce, response: &Response) -> f64 {
    let sensitivity = response.sensitivity.get(&brake.role).copied().unwrap_or(0.0);
    (1.0 - brake.share).powf(-sensitivity)
}

/// CPU time of a brake that takes exactly its share.
fn brake_time(brake: BrakeForce, response: &Response) -> Nanos {
    let role = response.cpu.get(&brake.role).copied().unwrap_or(0.0);
    Nanos((role * brake.share / (1.0 - brake.share) * 1e9) as u64)
}

/// In a window, the work of `share` of a script's seconds; of a thousand operations where the spec has no
/// count. In an open loop, those that are due.
fn counted(spec: Spec, share: f64) -> Spec {
    let part = |whole: u64| (whole as f64 * share) as u64;
    let due = |rate: f64| rate * spec.duration_ns.unwrap_or(Nanos::ZERO).as_secs_f64();
    let operations =
        spec.rate.map_or_else(|| part(spec.operations.unwrap_or(1_000)), |rate| due(rate) as u64);
    let operations = Some(operations);
    Spec { operations, bytes: spec.bytes.map(part), ..spec }
}

/// Every operation of a scripted client takes the same time: the elapsed time divided among its connections.
/// Of an open loop: a thousandth of the script's `seconds`, and twice that in one operation of five. No more
/// of them end than in a closed loop, and a queue grows.
fn done(spec: &Spec, elapsed: Nanos, seconds: f64, response: &Response) -> Done {
    let able = spec.rate.map_or(u64::MAX, |_| (1e3 / seconds * elapsed.as_secs_f64()) as u64);
    let requested = spec.operations.unwrap_or(0).min(able);
    let operations = requested.saturating_sub(response.errors.total());
    let mut latency = Recorder::default();
    let each = match spec.rate {
        Some(_) => (seconds * 1e6) as u64,
        None => elapsed.0 * u64::from(spec.connections) / requested.max(1),
    };
    let is_late = |index: u64| spec.rate.is_some() && index.is_multiple_of(5);
    // Where more are due, each waits for all that are behind.
    let behind = spec.rate.map_or(0, |rate| each.saturating_sub((1e9 / rate) as u64));
    let took = |index: u64| if is_late(index) { 2 * each } else { each };
    (0..operations).for_each(|index| latency.record(took(index) + index * behind));
    let bytes = stream_bytes(spec).map(|bytes| bytes.saturating_sub(response.missing_bytes));
    Done {
        operations,
        bytes: Bytes(bytes.unwrap_or(operations * spec.size)),
        end_ns: elapsed,
        errors: response.errors.clone(),
        latency: Some(latency.counts()),
        cpu_ns: Nanos((response.cpu.get(&Role::Client).copied().unwrap_or(0.0) * 1e9) as u64),
        verified: operations,
        ..Done::default()
    }
}

/// The bytes of a stream, all directions together.
fn stream_bytes(spec: &Spec) -> Option<u64> {
    let directions = if spec.options.get("direction").is_some_and(|d| d == "both") { 2 } else { 1 };
    Some(spec.bytes? * directions)
}
