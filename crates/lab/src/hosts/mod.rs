//! The lab over several hosts: each role on the host of its place, in its own agent's processes, over the
//! network between the hosts.
//!
//! A trial's stages are barriers: a client is started when the agents of all hosts have replied that their
//! systems are ready and that their clocks are recorded. No time of one host is subtracted from another's.
//! The window is the client's; on other hosts CPU time is that of the whole client's run, in which systems
//! have nothing else to do, and shares of CPUs are of the window's length.

mod ssh;
mod watched;

pub use watched::{Server, Watched};

use crate::namespaces::Namespaces;
use crate::protocol::{CpuTime, CpuTimes, File, Turns};
use crate::{BrakeForce, ClientRun, Lab, LabError, Label, Launch, Purpose, Ready};
use linerate_contract::{Nanos, Role};
use linerate_model::path::NetworkPath;
use linerate_model::{Host, Place, PlannedHost, Usage};
use ssh::Package;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The CPUs of the host with index i have the numbers from i times this.
pub const CPUS_OF_HOST: u32 = 1 << 16;

/// See the module's documentation.
#[derive(Debug)]
pub struct Hosts {
    members: Vec<HostMember>,
    package: Package,
    interrupted: Arc<AtomicBool>,
    started: Instant,
}

/// A host and its agent.
#[derive(Debug)]
struct HostMember {
    planned: PlannedHost,
    /// The program there; empty for this machine.
    program: String,
    /// `None`: lost; the next trial connects again.
    agent: Option<Namespaces>,
}

impl Hosts {
    /// Connects to all hosts.
    ///
    /// # Errors
    /// [`LabError::Lost`]: a host cannot be reached or refuses, its linerate is of another version, or its
    /// address is not known; with the remedy.
    pub fn raise(
        hosts: Vec<PlannedHost>,
        home: &Path,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Self, LabError> {
        let package = Package::make(home)?;
        let new = |planned| HostMember { planned, program: String::new(), agent: None };
        let members = hosts.into_iter().map(new).collect();
        let mut all = Self { members, package, interrupted, started: Instant::now() };
        let mut here: Option<Ipv4Addr> = None;
        for member in &mut all.members {
            here = here.or(member.connect(&all.package, &all.interrupted)?);
        }
        // The roles beside a server that runs elsewhere are all on this machine.
        let is_served = all.members.iter().any(HostMember::is_served);
        let here = here.or(is_served.then_some(Ipv4Addr::LOCALHOST));
        for member in all.members.iter_mut().filter(|member| !member.is_served()) {
            member.planned.address = member.planned.address.or(here.filter(|_| member.is_local()));
            member.describe()?;
        }
        Ok(all)
    }

    fn index(&self, role: Role) -> usize {
        self.members.iter().position(|member| member.planned.roles.contains(&role)).unwrap_or(0)
    }

    /// Does something on a host; one that is lost fails the trial and is connected again for the next.
    fn on<T>(
        &mut self,
        index: usize,
        work: impl FnOnce(&mut Namespaces) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let member = &mut self.members[index];
        let place = &member.planned.place;
        let Some(agent) = &mut member.agent else {
            return Err(LabError::system(format!("the host {place} is lost")));
        };
        match work(agent) {
            Err(LabError::Lost(why)) => {
                let reason = format!("the host {place} is lost: {why}");
                member.agent = None;
                Err(LabError::system(reason))
            }
            other => other,
        }
    }

    /// The launch as its own host has it.
    fn there(&self, launch: &Launch) -> (usize, Launch) {
        let index = self.index(launch.role);
        let base = index as u32 * CPUS_OF_HOST;
        let cpus = launch.cpus.iter().map(|cpu| cpu.saturating_sub(base)).collect();
        (index, Launch { cpus, ..launch.clone() })
    }

    fn others(&self, client: usize) -> Vec<usize> {
        let others = (0..self.members.len()).filter(|index| *index != client);
        others.filter(|index| !self.members[*index].is_served()).collect()
    }
}

impl HostMember {
    fn is_local(&self) -> bool {
        self.planned.ssh_destination().is_none()
    }

    /// The host's server runs already, and there is no agent.
    fn is_served(&self) -> bool {
        self.planned.place.served_at().is_some()
    }

    /// Starts the agent; returns this machine's address as that host sees it.
    fn connect(
        &mut self,
        package: &Package,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Option<Ipv4Addr>, LabError> {
        if self.is_served() {
            return Ok(None);
        }
        if self.is_local() {
            self.agent = Some(Namespaces::raise(&Place::Local, interrupted.clone())?);
            return Ok(None);
        }
        let reached = ssh::reach(&self.planned, package)?;
        let (child, socket) = ssh::start(&self.planned, &reached.program)?;
        let agent = Namespaces::remote(child, socket, interrupted.clone())
            .map_err(|error| LabError::Lost(format!("{}: {error}", self.planned.place)))?;
        let (theirs, ours) = (&agent.facts().version, env!("CARGO_PKG_VERSION"));
        if theirs != ours {
            let place = &self.planned.place;
            return Err(LabError::Lost(format!(
                "{place}: linerate there is {theirs}, here {ours}: install the same version on both"
            )));
        }
        self.planned.address = self.planned.address.or(reached.address);
        (self.program, self.agent) = (reached.program, Some(agent));
        Ok(reached.seen_from_there)
    }

    /// Facts of the machine and of the interface with its address, for the report.
    fn describe(&mut self) -> Result<(), LabError> {
        let place = &self.planned.place;
        let address = self.planned.address.ok_or_else(|| {
            let table = place.machine().unwrap_or_default();
            LabError::Lost(format!(
                "the address of {place} is not known: write it in hosts.toml, under [{table}]: \
                 address = \"...\""
            ))
        })?;
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let interface = agent.interface(address)?;
        self.planned.host = agent.host();
        let facts = &mut self.planned.host.facts;
        facts.remove("links");
        if let Some(settings) = facts.remove("set by the lab") {
            facts.insert("settings of the host".into(), settings);
        }
        facts.extend(interface);
        Ok(())
    }

    fn cpus(&self) -> Vec<u32> {
        let all = self.agent.as_ref().map(Namespaces::cpus).unwrap_or_default();
        let few = &self.planned.cpus;
        all.into_iter().filter(|cpu| few.is_empty() || few.contains(cpu)).collect()
    }
}

impl Lab for Hosts {
    fn host(&self) -> Host {
        self.members[self.index(Role::Client)].planned.host.clone()
    }

    fn hosts(&self) -> Vec<PlannedHost> {
        self.members.iter().map(|member| member.planned.clone()).collect()
    }

    fn ask_host(&self, role: Role, arguments: &str, input: &[u8]) -> Option<Result<String, LabError>> {
        let member = &self.members[self.index(role)];
        (!member.is_local()).then(|| ssh::ask(&member.planned, &member.program, arguments, input))
    }

    fn is_grouped(&self) -> bool {
        false
    }

    fn cpus(&self) -> Vec<u32> {
        let of_member = |(index, member): (usize, &HostMember)| {
            let base = index as u32 * CPUS_OF_HOST;
            member.cpus().into_iter().map(move |cpu| base + cpu)
        };
        self.members.iter().enumerate().flat_map(of_member).collect()
    }

    fn now(&self) -> Nanos {
        self.started.elapsed().into()
    }

    fn raise(&mut self, label: &Label, path: NetworkPath, files: Vec<File>) -> Result<(), LabError> {
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            if member.is_served() {
                continue;
            }
            if member.agent.is_none() {
                member.connect(&self.package, &self.interrupted).map_err(|error| {
                    let next = "when it is back, go on with `linerate run --resume DIR`";
                    LabError::Lost(format!("{error}; {next}"))
                })?;
            }
            self.on(index, |agent| agent.raise(label, path.clone(), files.clone()))?;
        }
        Ok(())
    }

    fn start(&mut self, launch: &Launch) -> Result<Nanos, LabError> {
        let (index, launch) = self.there(launch);
        if self.members[index].is_served() {
            return Ok(Nanos::ZERO);
        }
        self.on(index, |agent| agent.start(&launch))
    }

    fn listeners(&mut self, ready: Ready) -> Result<Vec<SocketAddr>, LabError> {
        let server = self.index(Role::Server);
        self.on(server, |agent| agent.listeners(ready))
    }

    fn run(&mut self, launch: &Launch, purpose: Purpose, deadline: Duration) -> Result<ClientRun, LabError> {
        let (client, launch) = self.there(launch);
        for other in self.others(client) {
            self.on(other, Namespaces::record)?;
        }
        let result = self.on(client, |agent| agent.run(&launch, purpose, deadline));
        let mut run = match result {
            // The cause may be on another host.
            Err(error @ LabError::System { .. }) => {
                for other in self.others(client) {
                    self.on(other, Namespaces::check_systems)?;
                }
                return Err(error);
            }
            other => other?,
        };
        let window = run.window;
        renumber(&mut run.record.before, client);
        renumber(&mut run.record.after, client);
        for other in self.others(client) {
            let there = self.on(other, Namespaces::recorded)?;
            run.cpu.extend(there.cpu);
            run.server_stdout.extend(there.server_stdout);
            let [mut before, mut after] = [there.before, there.after];
            shorten(&before, &mut after, window);
            renumber(&mut before, other);
            renumber(&mut after, other);
            run.record.before.cpus.extend(before.cpus);
            run.record.after.cpus.extend(after.cpus);
        }
        Ok(run)
    }

    fn usage(&mut self) -> Result<Option<Usage>, LabError> {
        let server = self.index(Role::Server);
        if self.members[server].is_served() {
            return Ok(None);
        }
        self.on(server, Namespaces::usage)
    }

    // Turns and brakes are parts of duets, which a run over several hosts does not have.
    fn take_turns(&mut self, _: Turns) {}

    fn brake(&mut self, _: BrakeForce) {}

    fn stop(&mut self) -> Result<(), LabError> {
        for index in 0..self.members.len() {
            // A lost host has nothing to stop: its agent ends with the channel.
            if self.members[index].agent.is_some() {
                let stopped = self.on(index, Namespaces::stop);
                if stopped == Err(LabError::Interrupted) {
                    return stopped;
                }
            }
        }
        Ok(())
    }
}

/// The CPUs of each host have numbers of their own.
fn renumber(times: &mut CpuTimes, host: usize) {
    times.cpus.iter_mut().for_each(|cpu| cpu.cpu += host as u32 * CPUS_OF_HOST);
}

/// The recording on another host begins before the client's window and ends after it; in between its systems
/// are idle. The time that was not used is shortened to the window's length.
fn shorten(before: &CpuTimes, after: &mut CpuTimes, window: Nanos) {
    for now in &mut after.cpus {
        let Some(then) = before.cpus.iter().find(|cpu| cpu.cpu == now.cpu) else { continue };
        let (total, used) = (now.total.since(then.total), used(now).since(used(then)));
        now.total = then.total + total.min(window.max(used));
    }
}

fn used(cpu: &CpuTime) -> Nanos {
    cpu.busy + cpu.steal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(total: u64, busy: u64) -> CpuTimes {
        let cpu = CpuTime { cpu: 1, total: Nanos(total), busy: Nanos(busy), ..CpuTime::default() };
        CpuTimes { processes: Vec::new(), cpus: vec![cpu] }
    }

    #[test]
    fn idle_time_outside_of_the_window_does_not_count_on_another_host() {
        let shortened = |busy: u64, window: u64| {
            let mut after = cpu(1_100, 10 + busy);
            shorten(&cpu(100, 10), &mut after, Nanos(window));
            after.cpus[0].total.0 - 100
        };
        assert_eq!([shortened(500, 600), shortened(500, 400), shortened(500, 5_000)], [600, 500, 1_000]);
    }

    #[test]
    fn cpus_of_two_hosts_have_different_numbers() {
        let mut times = cpu(1, 1);
        renumber(&mut times, 2);
        assert_eq!(times.cpus[0].cpu, 2 * CPUS_OF_HOST + 1);
    }
}
