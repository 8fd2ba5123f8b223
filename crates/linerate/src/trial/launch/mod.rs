//! From a cell to command lines: addresses, pins, rendered configs, specs. Nothing is started here.

mod address;
mod checks;
mod role;

use super::Context;
use super::work::{Timing, Work};
use crate::authority::Authority;
use crate::lab::hosts::CPUS_OF_HOST;
use crate::lab::namespaces::READY_DEADLINE;
use crate::lab::pair::SLICE;
use crate::lab::protocol::File;
use crate::lab::{DOCROOT, Launch, Ready};
use crate::measurement::{LabFlag, PlannedCell, Sharing};
use crate::parameters::Parameters;
use crate::path::NetworkPath;
use crate::pins::{self, Pins};
use crate::placement;
use crate::stats::check::{LONGEST_STALL, LONGEST_STALL_WITH_LOSS};
use crate::subject::Server;
use crate::system::manifest::{OutputPatterns, Verifier};
use crate::system::{SystemVariant, VERIFIER, template};
use address::Addresses;
use checks::{is_search, is_steady};
use linerate_contract::{Alternation, Nanos, Role};
use role::Seat;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// In the timed part, the checksum of every 16th response is compared; status and length of each.
const SAMPLE_EVERY: u64 = 16;

/// All processes of a trial.
pub(super) struct Launches {
    page: Option<String>,
    path: NetworkPath,
    systems: Vec<Launch>,
    verifier: Launch,
    verify: Work,
    /// Absent if the suite has no warm-up.
    warmer: Option<Launch>,
    client: Launch,
    /// Patterns for clients that do not implement the contract: the measuring and the verifying client.
    output: Option<OutputPatterns>,
    verifier_output: Option<OutputPatterns>,
    /// Bytes of a write: received bytes divided by it are the operations of a client that prints no count.
    size: u64,
    work: Work,
    /// The time limit of the measurement.
    timeout: Duration,
    timing: Timing,
    may_starve: bool,
    /// Whether the server sends packets all the time, so that a pause shows a hang. Where the load
    /// alternates, the client's report shows it.
    is_steady: bool,
    /// The share of its time without progress that is a hang.
    longest_stall: f64,
    /// The error rate that a variant of the cell tolerates, in place of the default of one percent.
    tolerated_errors: Option<f64>,
    /// The client may do more operations than it was asked for.
    overshoots: bool,
    pins: Pins,
}

/// The time for which a client works.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedWindow {
    pub(super) length: Nanos,
    /// `None`: the cell is alone.
    pub(super) sharing: Option<Sharing>,
    /// The turns of the client.
    pub(super) alternation: Option<Alternation>,
    /// True for the second side.
    pub(super) second: bool,
    /// Side by side, one side can get nearly all of the CPUs. A warm-up unit shows that, and has not failed.
    pub(super) may_starve: bool,
}

/// The window of a cell alone whose transfers are repeated, since one is too short.
fn transfers_for_a_time(parameters: &Parameters) -> Option<TimedWindow> {
    let seconds =
        parameters.seconds.filter(|_| parameters.bytes.is_some() && parameters.operations.is_none());
    seconds.map(|seconds| alone(Nanos(seconds * 1_000_000_000)))
}

/// The window of a cell alone.
pub(super) fn alone(length: Nanos) -> TimedWindow {
    TimedWindow { length, sharing: None, alternation: None, second: false, may_starve: false }
}

impl Launches {
    /// With `window`, the client works for that time in place of the cell's operations, bytes or seconds.
    pub(super) fn new(
        context: Context<'_>,
        cell: &PlannedCell,
        window: Option<TimedWindow>,
    ) -> Result<Self, String> {
        let own = context.servers.and_then(|servers| servers.of_cell(cell));
        let cell = &own.map_or_else(|| cell.clone(), |server| server.warmed(cell));
        let is_own = |role: Role| role == Role::Server && own.is_some_and(Server::is_started_here);
        let mut chosen = Vec::new();
        for system in cell.systems.iter().filter(|system| !is_own(system.role)) {
            chosen.push((system.role, context.registry.variant(&system.name, system.role)?));
        }
        let of_role = |role| chosen.iter().filter(move |(of, _)| *of == role).map(|(_, chosen)| *chosen);
        let relays: Vec<SystemVariant<'_>> = of_role(Role::Relay).collect();
        // One that runs already is not started.
        let is_started = |role: Role| role != Role::Server || own.is_none();
        let started = chosen.iter().filter(|(role, c)| c.variant.start.is_some() && is_started(*role));
        let started = started.map(|(role, _)| *role).chain([Role::Server].into_iter().filter(|r| is_own(*r)));
        let running: Vec<Role> = started.collect();
        let threads = cell.parameters.threads.and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
        let host = |role| placement::index_of(context.hosts, role);
        let pins = pins::assign_by_host(&few(context.cpus, cell), &running, threads, host);
        let is_together = |window: &TimedWindow| window.sharing == Some(Sharing::Together);
        let slice = window.filter(is_together).map(|_| SLICE);
        let side = usize::from(window.is_some_and(|window| window.second));
        let setting = Setting::new(context, cell, &pins, &relays, slice, own.map(|own| (own, side)))?;
        let window = window.or_else(|| transfers_for_a_time(&cell.parameters));
        let client = of_role(Role::Client).next().ok_or("the cell has no client")?;
        let verifier = verifier(context, client)?;
        let measured = window.map_or(cell.parameters, |window| Parameters {
            operations: None,
            bytes: None,
            // Programs that do not implement the contract count in whole seconds.
            seconds: Some(window.length.0.div_ceil(1_000_000_000)),
            ..cell.parameters
        });
        let mut systems = setting.own_server();
        // From the server: some relays connect to what is behind them at start.
        let row = relays.iter().enumerate().rev().map(|(index, relay)| (Seat::relay(index), *relay));
        let server = of_role(Role::Server).filter(|_| is_started(Role::Server));
        for (seat, chosen) in server.map(|server| (Seat::SERVER, server)).chain(row) {
            systems.push(setting.launch(chosen, seat, &measured, SAMPLE_EVERY, window)?);
        }
        // In a closed loop, also before an open one.
        let for_a_time = Parameters { rate: None, seconds: Some(1), ..cell.parameters };
        let (verify, warmup) = (cell.parameters.with(&cell.verify), cell.parameters.with(&cell.warmup));
        let as_client =
            |chosen, parameters, every| setting.launch(chosen, Seat::CLIENT, parameters, every, None);
        let warmer = match cell.warm_for {
            Some(length) => {
                Some(setting.launch(verifier, Seat::CLIENT, &for_a_time, 1, Some(alone(length)))?)
            }
            None => {
                (cell.warmup != Parameters::default()).then(|| as_client(verifier, &warmup, 1)).transpose()?
            }
        };
        let work = window.map_or_else(
            || Work::from_parameters(&measured, &cell.options),
            |window| Work::Time(window.length),
        );
        let deadline = measured.deadline.map_or(Duration::MAX, Duration::from_secs);
        Ok(Self {
            page: setting.page(),
            path: setting.path(),
            systems,
            verifier: as_client(verifier, &verify, 1)?,
            verify: Work::from_parameters(&verify, &cell.options),
            warmer,
            client: setting.launch(client, Seat::CLIENT, &measured, SAMPLE_EVERY, window)?,
            output: client.variant.output.clone(),
            verifier_output: verifier.variant.output.clone(),
            size: cell.parameters.size.unwrap_or(0),
            work,
            timeout: work.timeout().min(deadline),
            timing: match client.variant.output {
                Some(_) => Timing::Foreign,
                None if is_search(cell, client) => Timing::Search,
                None => Timing::Window,
            },
            may_starve: window.is_some_and(|window| window.may_starve),
            is_steady: window.is_none_or(|window| window.alternation.is_none()) && is_steady(cell, &measured),
            longest_stall: if cell.path.loses() { LONGEST_STALL_WITH_LOSS } else { LONGEST_STALL },
            tolerated_errors: chosen.iter().filter_map(|(_, c)| c.variant.tolerated_errors).reduce(f64::max),
            overshoots: client.variant.overshoots,
            pins,
        })
    }

    /// Files for all roles: the page, if the layer has one.
    pub(super) fn shared_files(&self) -> Vec<File> {
        let page = self.page.iter().cloned();
        page.map(|contents| File { path: Path::new(DOCROOT).join("index.html"), contents }).collect()
    }

    /// The path between client and server.
    pub(super) fn path(&self) -> NetworkPath {
        self.path.clone()
    }

    /// Servers and relays, in the order in which they are started.
    pub(super) fn systems(&self) -> impl Iterator<Item = &Launch> {
        self.systems.iter()
    }

    pub(super) fn verifier(&self) -> &Launch {
        &self.verifier
    }

    pub(super) fn warmer(&self) -> Option<&Launch> {
        self.warmer.as_ref()
    }

    pub(super) fn client(&self) -> &Launch {
        &self.client
    }

    /// The time limit of the measurement.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether the client is a program that does not implement the contract.
    pub(super) fn counts_whole_seconds(&self) -> bool {
        self.output.is_some()
    }

    /// Flags of the roles' placement on CPUs.
    pub(super) fn flags(&self) -> &[LabFlag] {
        &self.pins.flags
    }

    /// The roles that may run on this CPU; those that are not pinned may run on any.
    pub(super) fn roles_on(&self, cpu: u32) -> Vec<Role> {
        let all = self.systems.iter().chain([&self.client]);
        let is_here = |launch: &&Launch| launch.cpus.is_empty() || launch.cpus.contains(&cpu);
        all.filter(|launch| launch.process.is_some()).filter(is_here).map(|launch| launch.role).collect()
    }

    /// How long a server of the user's own may take until its first response; `None` for systems.
    pub(super) fn ready_within(&self) -> Option<Nanos> {
        let own = self.systems.iter().find(|launch| launch.user.is_some() && !launch.is_companion)?;
        Some(own.ready_within.unwrap_or(READY_DEADLINE).into())
    }
}

/// Parts that all roles of a trial share.
struct Setting<'a> {
    context: Context<'a>,
    cell: &'a PlannedCell,
    pins: &'a Pins,
    addresses: Addresses,
    authority: Option<Authority>,
    /// True if the relay has the certificate, and the server no TLS.
    relay_ends_tls: bool,
    slice: Option<Nanos>,
    /// The user's own server of the cell, and the side of the unit.
    own: Option<(Server<'a>, usize)>,
}

impl<'a> Setting<'a> {
    fn new(
        context: Context<'a>,
        cell: &'a PlannedCell,
        pins: &'a Pins,
        relays: &[SystemVariant<'_>],
        slice: Option<Nanos>,
        own: Option<(Server<'a>, usize)>,
    ) -> Result<Self, String> {
        let authority = Authority::for_layer(cell.layer)?;
        Ok(Self {
            context,
            cell,
            pins,
            addresses: Addresses::new(
                &cell.path,
                relays,
                context.hosts,
                own.and_then(|(server, side)| server.address(side)),
            ),
            authority,
            relay_ends_tls: relays.iter().any(|relay| relay.variant.terminates_tls),
            slice,
            own,
        })
    }

    /// The user's own server with its companions, in the order in which they are started.
    fn own_server(&self) -> Vec<Launch> {
        let launches = |(server, side): (Server<'_>, usize)| server.launches(self.pins, self.slice, side);
        self.own.map(launches).unwrap_or_default()
    }

    /// A role's process, with these parameters.
    fn launch(
        &self,
        chosen: SystemVariant<'_>,
        seat: Seat,
        parameters: &Parameters,
        check_every: u64,
        window: Option<TimedWindow>,
    ) -> Result<Launch, String> {
        let (role, folder) = (seat.role, seat.folder());
        let mut spec = self.spec(chosen, seat, parameters, check_every);
        if let Some(window) = window.filter(|_| role == Role::Client) {
            (spec.duration_ns, spec.alternation) = (Some(window.length), window.alternation);
            self.repeat(&mut spec, window.sharing);
        }
        let values = self.values(chosen, seat, &folder, parameters, &spec);
        let variant = chosen.variant;
        let place = |what: &str| format!("systems/{}/{what}", chosen.system.name);
        let manifest = place("system.toml");
        let render_all = |key: &str, arguments: &[String]| -> Result<Vec<String>, String> {
            let place = format!("{manifest}: variants.{}.{key}", chosen.name);
            arguments.iter().map(|argument| template::render(&place, argument, &values)).collect()
        };
        let mut files = Vec::new();
        for config in &variant.configs {
            let text = fs::read_to_string(chosen.system.folder.join(config))
                .map_err(|e| format!("{}: {e}", place(config)))?;
            files.push(File {
                path: folder.join(config),
                contents: template::render(&place(config), &text, &values)?,
            });
        }
        let mut setup = Vec::new();
        for command in &variant.setup {
            let words = render_all("setup", command)?;
            let (program, arguments) =
                words.split_first().ok_or_else(|| format!("{manifest}: an empty setup command"))?;
            setup.push((PathBuf::from(program), arguments.to_vec()));
        }
        let process = match &variant.start {
            None => None,
            Some(start) => {
                let arguments = start.arguments(role).ok_or_else(|| {
                    format!("{manifest}: variants.{}.start has nothing for a {role}", chosen.name)
                })?;
                let program =
                    self.context.programs.command_line(role, chosen.name, self.build_of(seat)).cloned();
                let located = || Some((crate::lab::program::locate(chosen.program()?)?, Vec::new()));
                let (program, mut words) = program
                    .or_else(located)
                    .ok_or_else(|| format!("{manifest}: `{}` has no program to start", chosen.name))?;
                words.extend(render_all("start", arguments)?);
                Some((program, words))
            }
        };
        Ok(Launch {
            role,
            system: chosen.name.to_owned(),
            host: self.host(seat),
            folder,
            files,
            setup,
            process,
            ready_within: None,
            ready: if role == Role::Client { Ready::Event } else { variant.ready },
            stop: variant.stop,
            port: match role {
                Role::Relay => self.addresses.of_relay(0)[0].port(),
                _ => self.addresses.server.port(),
            },
            cpus: self.pins.cpus.get(&role).cloned().unwrap_or_default(),
            is_companion: false,
            own_session: self.pins.has_own(role),
            slice: self.slice,
            tuns: role == Role::Server && self.cell.path.has_two_tuns(),
            user: None,
        })
    }
}

/// The CPUs of the cell: the number of its parameter `cpus`, on each host; without it, all.
fn few(cpus: &[u32], cell: &PlannedCell) -> Vec<u32> {
    let wanted = cell.parameters.cpus.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX).max(1);
    let of_host = cpus.chunk_by(|a, b| a / CPUS_OF_HOST == b / CPUS_OF_HOST);
    of_host.flat_map(|cpus| cpus.iter().take(wanted)).copied().collect()
}

/// A client that implements the contract also verifies. A foreign client does not report verified content, so
/// linerate's own client verifies in its place, unless the server accepts that foreign client only.
fn verifier<'a>(context: Context<'a>, client: SystemVariant<'a>) -> Result<SystemVariant<'a>, String> {
    if client.variant.output.is_none() || client.variant.verifier == Verifier::Itself {
        Ok(client)
    } else {
        context.registry.variant(VERIFIER, Role::Client)
    }
}
