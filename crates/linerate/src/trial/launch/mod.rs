//! From a cell to command lines: addresses, pins, rendered configs, specs. Nothing is started here.

use super::{Context, VERIFIER, output};
use crate::lab::protocol::{File, HostName, address};
use crate::lab::{ClientRun, DOCROOT, Launch, SCRATCH};
use crate::measurement::{Measurement, PlannedCell};
use crate::pins;
use crate::system::manifest::{ReachedAt, Ready, Topology};
use crate::system::{Chosen, template};
use linerate_contract::{Expect, Role, Spec, crc32, page};
use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Where servers and relays listen: HTTP's port, which the packet filters redirect as well.
const PORT: u16 = 80;
/// One worker each: systems are compared on equal CPU, and one CPU is what each of them has (docs/method.md).
const WORKERS: u32 = 1;
/// Checked byte for byte, one after the other, before anything is timed.
const VERIFY_OPERATIONS: u64 = 10;
/// Run at full concurrency after that, so that caches, pools and child processes are there.
const WARMUP_OPERATIONS: u64 = 200;
/// In the timed part, every so-manieth answer's checksum is compared; status and length always.
const SAMPLE_EVERY: u64 = 16;

/// Everything that a trial starts.
pub(super) struct Launches {
    page: String,
    systems: Vec<Launch>,
    verifier: Launch,
    warmer: Launch,
    client: Launch,
    output: Option<crate::system::manifest::Output>,
    operations: u64,
    cpu_shared: bool,
}

impl Launches {
    pub(super) fn new(context: Context<'_>, cell: &PlannedCell) -> Result<Self, String> {
        let mut chosen = BTreeMap::new();
        for system in &cell.systems {
            chosen.insert(system.role, context.registry.variant(&system.name, system.role)?);
        }
        let running: Vec<Role> =
            chosen.iter().filter(|(_, c)| c.variant.start.is_some()).map(|(role, _)| *role).collect();
        let (pins, cpu_shared) = pins::assign(context.cpus, &running);
        let setting = Setting {
            context,
            cell,
            pins,
            addresses: Addresses::new(cell.topology, chosen.get(&Role::Relay)),
        };
        let client = *chosen.get(&Role::Client).ok_or("the cell has no client")?;
        let verifier = context.registry.variant(VERIFIER, Role::Client)?;
        let mut systems = Vec::new();
        // The server first: some relays ask it whether it is there.
        for role in [Role::Server, Role::Relay] {
            if let Some(chosen) = chosen.get(&role) {
                systems.push(setting.launch(
                    *chosen,
                    role,
                    setting.spec(*chosen, role, setting.operations(), SAMPLE_EVERY),
                )?);
            }
        }
        let one_by_one =
            Spec { connections: 1, ..setting.spec(verifier, Role::Client, VERIFY_OPERATIONS, 1) };
        let warm_up = setting.spec(verifier, Role::Client, WARMUP_OPERATIONS, 1);
        let measure = setting.spec(client, Role::Client, setting.operations(), SAMPLE_EVERY);
        Ok(Self {
            page: setting.page(),
            systems,
            verifier: setting.launch(verifier, Role::Client, one_by_one)?,
            warmer: setting.launch(verifier, Role::Client, warm_up)?,
            client: setting.launch(client, Role::Client, measure)?,
            output: client.variant.output.clone(),
            operations: setting.operations(),
            cpu_shared,
        })
    }

    /// What every role may read: the page.
    pub(super) fn shared_files(&self) -> Vec<File> {
        vec![File { path: Path::new(DOCROOT).join("index.html"), contents: self.page.clone() }]
    }

    /// Servers and relays, in the order in which they are started.
    pub(super) fn systems(&self) -> impl Iterator<Item = &Launch> {
        self.systems.iter()
    }

    pub(super) fn verifier(&self) -> &Launch {
        &self.verifier
    }

    pub(super) fn warmer(&self) -> &Launch {
        &self.warmer
    }

    pub(super) fn client(&self) -> &Launch {
        &self.client
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn cpu_shared(&self) -> bool {
        self.cpu_shared
    }

    pub(super) fn roles_on(&self, cpu: u32) -> Vec<Role> {
        let all = self.systems.iter().chain([&self.client]);
        all.filter(|launch| launch.process.is_some() && launch.cpus.contains(&cpu))
            .map(|launch| launch.role)
            .collect()
    }

    /// Not one of the first operations may fail.
    pub(super) fn check_verified(&self, run: &ClientRun) -> Result<(), String> {
        let verified = output::read_contract(&run.stdout)?;
        if verified.errors.total() == 0 && verified.operations == VERIFY_OPERATIONS {
            return Ok(());
        }
        let kinds: Vec<String> =
            verified.errors.0.iter().map(|(kind, n)| format!("{n} {}", kind.name())).collect();
        let failed = verified.errors.total();
        Err(format!(
            "{failed} of {VERIFY_OPERATIONS} operations, one at a time, went wrong: {}",
            kinds.join(", ")
        ))
    }

    /// What the measuring client says.
    pub(super) fn read(&self, run: &ClientRun) -> Result<Measurement, String> {
        match &self.output {
            None => output::read_contract(&run.stdout),
            Some(patterns) => output::read_foreign(patterns, run),
        }
    }
}

/// Who is where.
struct Addresses {
    server: SocketAddr,
    relay: SocketAddr,
    /// What the client connects to.
    target: SocketAddr,
}

impl Addresses {
    fn new(topology: Topology, relay: Option<&Chosen<'_>>) -> Self {
        let at = |ip: Ipv4Addr| SocketAddr::from((ip, PORT));
        let server = at(match topology {
            Topology::Loopback => Ipv4Addr::LOCALHOST,
            Topology::Link => address::SERVER_ON_LINK,
            Topology::Router => address::SERVER,
        });
        let router = at(address::ROUTER_CLIENT_SIDE);
        let at_relay = relay.is_some_and(|relay| relay.variant.reached_at == ReachedAt::Relay);
        Self { server, relay: router, target: if at_relay { router } else { server } }
    }
}

struct Setting<'a> {
    context: Context<'a>,
    cell: &'a PlannedCell,
    pins: BTreeMap<Role, Vec<u32>>,
    addresses: Addresses,
}

impl Setting<'_> {
    fn parameter(&self, name: &str) -> Option<u64> {
        self.cell.parameters.get(name).copied()
    }

    fn operations(&self) -> u64 {
        self.parameter("operations").unwrap_or(1)
    }

    fn size(&self) -> usize {
        usize::try_from(self.parameter("size").unwrap_or(0)).unwrap_or(usize::MAX)
    }

    fn page(&self) -> String {
        String::from_utf8(page(self.size())).expect("pages are ASCII")
    }

    fn spec(&self, chosen: Chosen<'_>, role: Role, operations: u64, check_every: u64) -> Spec {
        let mut spec = Spec::new(role, &self.cell.layer, &self.cell.workload);
        spec.size = self.size() as u64;
        spec.threads = self.parameter("threads").and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
        spec.options = chosen.variant.options.clone();
        match role {
            Role::Server => spec.listen = Some(self.addresses.server),
            Role::Relay => {
                spec.layer = "tcp".into();
                spec.listen = Some(self.addresses.relay);
                spec.connect = Some(self.addresses.server);
            }
            Role::Client | Role::Describe => {
                let page = self.page();
                spec.connect = Some(self.addresses.target);
                if self.cell.topology != Topology::Loopback {
                    spec.sources = address::client_sources().into_iter().map(IpAddr::V4).collect();
                }
                spec.connections =
                    self.parameter("connections").and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
                spec.operations = Some(operations);
                spec.path = Some("/".into());
                let bytes = page.len() as u64;
                spec.expect =
                    Some(Expect { status: 200, bytes, crc32: crc32(page.as_bytes()), every: check_every });
            }
        }
        spec
    }

    fn launch(&self, chosen: Chosen<'_>, role: Role, spec: Spec) -> Result<Launch, String> {
        let folder = PathBuf::from(role.to_string());
        let values = self.values(role, &folder, &spec);
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
            Some(arguments) => {
                let program = self.context.programs.of(chosen.name).cloned();
                let program = program.or_else(|| crate::system::probe::locate(chosen.program()?));
                let program = program
                    .ok_or_else(|| format!("{manifest}: `{}` has no program to start", chosen.name))?;
                Some((program, render_all("start", arguments)?))
            }
        };
        Ok(Launch {
            role,
            system: chosen.name.to_owned(),
            host: self.host(role),
            folder,
            files,
            setup,
            process,
            ready: if role == Role::Client { Ready::Event } else { variant.ready },
            stop: variant.stop,
            port: PORT,
            cpus: self.pins.get(&role).cloned().unwrap_or_default(),
        })
    }

    fn host(&self, role: Role) -> HostName {
        match role {
            Role::Client | Role::Describe => HostName::Client,
            // On a single link there is no router, and no relay that could stand in it.
            Role::Relay if self.cell.topology == Topology::Router => HostName::Router,
            Role::Relay | Role::Server => HostName::Server,
        }
    }

    fn values(&self, role: Role, folder: &Path, spec: &Spec) -> minijinja::Value {
        let scratch = Path::new(SCRATCH);
        let mut values: BTreeMap<&str, minijinja::Value> =
            self.cell.parameters.iter().map(|(name, value)| (name.as_str(), (*value).into())).collect();
        values.insert("dir", scratch.join(folder).display().to_string().into());
        values.insert("docroot", scratch.join(DOCROOT).display().to_string().into());
        values.insert("workers", WORKERS.into());
        values.insert("spec", spec.to_json().into());
        match role {
            Role::Server => {
                values.insert("listen", template::address(self.addresses.server));
            }
            Role::Relay => {
                values.insert("listen", template::address(self.addresses.relay));
                values.insert("upstream", template::address(self.addresses.server));
            }
            Role::Client | Role::Describe => {
                values.insert("connect", template::address(self.addresses.target));
            }
        }
        minijinja::Value::from_serialize(&values)
    }
}
