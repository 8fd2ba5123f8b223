//! The contract test (sdk/CONTRACT.md) over every system that implements it. The folder is the registry, so a
//! new system is tested without a line here. Systems that are not installed or not built are skipped with a
//! message.

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod hanging;
mod one_loop;

use cases::{NO_BYTE, SLOW_STOP, TOO_FEW, cases, in_some_try, secure};
use common::program::{Program, any_port, describe, spec_of};
use common::{is_offline, skip};
use hanging::keeps_its_window;
use linerate::lab::program::locate;
use linerate::system::build::{Builds, Permission};
use linerate::system::manifest::Start;
use linerate::system::probe::{Presence, Replacement, presence};
use linerate::system::{Registry, SystemVariant};
use linerate_contract::{Describe, Direction, Done, Layer, Nanos, Role, Spec, Workload};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Layers in which a server that hangs is tried.
const HANGING: [Layer; 5] = [Layer::Tcp, Layer::Tls, Layer::WebSocket, Layer::Wss, Layer::Http];
/// Transfers on one connection, one after the other.
const TRANSFERS: u64 = 3;

#[test]
fn every_system_with_the_contract_keeps_it() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let registry = Registry::load(&home).unwrap();
    let broken = broken_promises(&registry, &mut Builds::new(Permission::Never));
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn skeletons_build_and_keep_the_contract() {
    // Always the same folder, so that the next test run finds the builds.
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skeletons");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let _ = fs::remove_dir_all(&home);
    for folder in ["suites", "systems"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    for shared in ["sdk", "crates", "Cargo.toml"] {
        std::os::unix::fs::symlink(root.join(shared), home.join(shared)).unwrap();
    }
    for (lang, tools) in [("rust", &["cargo"][..]), ("go", &["go"]), ("cpp", &["cmake", "g++", "make"])] {
        if let Some(tool) = tools.iter().find(|tool| locate(tool).is_none()) {
            skip(&format!("the {lang} skeleton: {tool} is not installed"));
            continue;
        }
        let name = format!("demo-{lang}");
        let make = || common::linerate_at(&home, "good", &["new", "system", &name, "--lang", lang]);
        let made = make();
        assert_eq!(made.status, 0, "{}", made.stderr);
        let again = make();
        assert_eq!(again.status, 2, "{}", again.stdout);
        assert!(again.stderr.contains("exists: choose another name"), "{}", again.stderr);
    }
    let registry = Registry::load(&home).unwrap();
    let silent = |_: &str| {};
    let mut builds = Builds::new(Permission::Build(&silent));
    for system in registry.systems.values() {
        match builds.folder(system, &[]) {
            Err(reason) if is_offline(&reason) => skip(&format!("{}: {reason}", system.name)),
            Err(reason) => panic!("{}: {reason}", system.name),
            Ok(_) => {}
        }
    }
    let broken = broken_promises(&registry, &mut builds);
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Every broken promise of every system, in the order of the registry.
fn broken_promises(registry: &Registry, builds: &mut Builds<'_>) -> Vec<String> {
    let mut ready = Vec::new();
    for chosen in registry.variants().filter(speaks_the_contract) {
        let own = chosen.program().filter(|name| name.starts_with("linerate-"));
        let program = match (own, presence(chosen, &Replacement::default(), builds, None)) {
            // It is beside linerate; test binaries are in another folder.
            (Some(name), _) => common::program::own(name),
            (None, Presence::Ready { program: Some(program), .. }) => program,
            (None, Presence::Ready { program: None, .. }) => continue,
            (None, Presence::Missing { reason, install }) => {
                skip(&format!("{}: {reason}: {install}", chosen.name));
                continue;
            }
        };
        ready.push((chosen, program));
    }
    // Programs mostly wait for each other, so more systems than there are CPUs are checked at a time.
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    let check = || {
        while let Some((index, (chosen, program))) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|index| Some((index, ready.get(index)?)))
        {
            let broken = promises(*chosen, program).into_iter().filter_map(|(promise, result)| {
                result.err().map(|what| format!("{}: {promise}: {what}", chosen.name))
            });
            let broken: Vec<String> = broken.collect();
            found.lock().unwrap().insert(index, broken);
        }
    };
    std::thread::scope(|scope| {
        (0..std::thread::available_parallelism().map_or(1, |cpus| 3 * cpus.get())).for_each(|_| {
            scope.spawn(check);
        });
    });
    found.into_inner().unwrap().into_values().flatten().collect()
}

/// Started with the spec and nothing else.
fn speaks_the_contract(chosen: &SystemVariant<'_>) -> bool {
    let is_spec = |start: &Start| matches!(start, Start::Same(words) if words == &["{{ spec }}"]);
    chosen.variant.start.as_ref().is_some_and(is_spec)
}

type Promise = (String, Result<(), String>);

/// Checks everything that the variant claims to support.
fn promises(chosen: SystemVariant<'_>, program: &Path) -> Vec<Promise> {
    let mut results: Vec<Promise> = Vec::new();
    let mut check = |name: &str, result: Result<(), String>| results.push((name.to_owned(), result));
    let described = match describe(program) {
        Ok(described) => described,
        Err(what) => return vec![("describes itself".to_owned(), Err(what))],
    };
    check("prints a version", if described.version.is_empty() { Err("it is empty".into()) } else { Ok(()) });
    check("exits 127 for unsupported layers and workloads", refuses(program, None));
    check("exits 2 for an unknown option", refuses_unknown_options(program, &described));
    for name in &chosen.variant.own_options {
        check(&format!("knows its own option {name}"), refuses(program, Some(name)));
    }
    check("exits 2 for an invalid spec", ends_with(program, "{\"contract\":3,\"role\"", 2));
    let mut wanted = Spec::new(Role::Client, Layer::Tcp, Workload::Rr);
    wanted.contract = 99;
    check("exits 2 for another contract", ends_with(program, &wanted.to_json(), 2));
    let is_relay = chosen.variant.roles.contains(&Role::Relay);
    let workloads =
        described.workloads.iter().filter(|workload| takes_part(&chosen.variant.workloads, workload));
    // The engine has tests of its own for this; the limit rows have no server.
    let drives = chosen.plays(Role::Client)
        && described.roles.contains(&Role::Client)
        && chosen.program().is_none_or(|name| !name.starts_with("linerate-"));
    let serving = Describe { roles: vec![Role::Server], ..described.clone() };
    for workload in workloads.filter(|_| !is_relay) {
        for layer in described.layers.iter().filter(|layer| takes_part(&chosen.variant.layers, layer)) {
            // The option is not the contract's.
            let resumes = chosen.variant.own_options.iter().any(|own| own == "handshake");
            let is_possible = |client: &Spec| resumes || !client.options.contains_key("handshake");
            for (name, client, server) in
                cases(*layer, *workload).into_iter().filter(|case| is_possible(&case.1))
            {
                let works = |described| {
                    in_some_try(|| works(chosen, described, program, client.clone(), server.clone()))
                };
                // Two ends of one library may have a fault in common.
                if *workload == Workload::Rr {
                    check(&format!("{name} with linerate's client"), works(&serving));
                }
                check(&name, works(&described));
            }
            if drives && HANGING.contains(layer) {
                let kept =
                    in_some_try(|| keeps_its_window(program, &chosen.variant.options, *layer, *workload));
                check(&format!("{workload} on {layer} keeps its window when the server hangs"), kept);
            }
        }
    }
    for (name, kept) in one_loop::promises(program, &chosen.variant.options, &described) {
        check(&name, kept);
    }
    let echoes =
        takes_part(&chosen.variant.workloads, &Workload::Rr) && described.workloads.contains(&Workload::Rr);
    for layer in [Layer::Tcp, Layer::Tls, Layer::WebSocket, Layer::Wss] {
        let layered = takes_part(&chosen.variant.layers, &layer) && described.layers.contains(&layer);
        if chosen.plays(Role::Server) && echoes && layered {
            let survived = in_some_try(|| survives(chosen, program, layer));
            check(&format!("survives peers that vanish on {layer}"), survived);
        }
    }
    results
}

/// In a layer or workload of the variant; none named: in every one.
fn takes_part<T: PartialEq>(named: &[T], one: &T) -> bool {
    named.is_empty() || named.contains(one)
}

/// The system's server (if it serves) against the system's client (if it drives), else against linerate's
/// own.
fn works(
    chosen: SystemVariant<'_>,
    described: &Describe,
    program: &Path,
    mut client: Spec,
    server: Option<Spec>,
) -> Result<(), String> {
    let plays = |role| chosen.plays(role) && described.roles.contains(&role);
    let own = common::program::native();
    // Of the programs that are client and server, only linerate's engine has an HTTP client.
    let is_http = ["http", "https", "h2c", "h2", "h3"].contains(&client.layer.as_str());
    let drives = plays(Role::Client) && (!is_http || program == own || !plays(Role::Server));
    let mut serving = None;
    if let Some(mut server) = server {
        if !drives && !plays(Role::Server) {
            return Ok(());
        }
        server.listen = Some(any_port());
        secure(&mut server, &mut client);
        let started = if plays(Role::Server) { program } else { &own };
        if plays(Role::Server) {
            server.options.extend(chosen.variant.options.clone());
        }
        let mut running = Program::start(started, &server)?;
        // Exit 127 for a shape or direction is allowed.
        let Some(address) = running.ready_or_not()? else { return Ok(()) };
        client.connect = Some(address);
        serving = Some(running);
    } else if !drives {
        return Ok(());
    }
    if drives {
        client.options.extend(chosen.variant.options.clone());
    }
    let started = if drives { program } else { &own };
    let client = spec_of(client);
    // A duet has several windows, each with a new client.
    for _ in 0..if client.duration_ns.is_some() { 2 } else { 1 } {
        if let Some(done) = Program::start(started, &client)?.done()? {
            right(&client, &done)?;
        }
    }
    serving.map_or(Ok(()), |mut serving| serving.stop())
}

/// The counts equal those of the spec, and agree with each other.
fn right(expected: &Spec, done: &Done) -> Result<(), String> {
    let failed = done.errors.total();
    if failed > 0 {
        return Err(format!("{failed} operations failed: {:?}", done.errors));
    }
    if done.end_ns <= done.start_ns {
        return Err(format!("its window is empty: {:?} to {:?}", done.start_ns, done.end_ns));
    }
    let direction = expected.choice::<Direction>().map_err(|refusal| refusal.to_string())?;
    let directions = if direction == Some(Direction::Both) { 2 } else { 1 };
    if expected.layer == Layer::Udp && expected.workload == Workload::Stream {
        return right_datagrams(expected, done);
    }
    let reported = done.tls.as_deref().unwrap_or_default();
    if expected.tls.is_some() && !reported.starts_with("TLSv1.3 TLS_AES_128_GCM_SHA256 ") {
        return Err(format!("TLS is {reported:?} instead of TLSv1.3 TLS_AES_128_GCM_SHA256 and the library"));
    }
    if expected.duration_ns.is_some() && (expected.bytes.is_some() || expected.workload == Workload::Dispatch)
    {
        return right_repetitions(expected, done, directions);
    }
    if let Some(bytes) = expected.bytes {
        let transfers = expected.transfers().map_err(|refusal| refusal.to_string())?;
        return same("bytes", done.bytes.0, bytes * directions * transfers * u64::from(expected.connections));
    }
    if expected.workload == Workload::Stream {
        return if done.bytes.0 > 0 { Ok(()) } else { Err(NO_BYTE.into()) };
    }
    let timed = expected.duration_ns.filter(|_| expected.operations.is_none());
    if let Some(duration) = timed {
        same("nanoseconds", done.end_ns.since(done.start_ns).0, duration.0)?;
    }
    let operations = timed.map_or(expected.operations.unwrap_or(0), |_| done.operations.max(1));
    same("operations", done.operations, operations)?;
    let moved = match expected.workload.as_str() {
        "rr" | "crr" => operations * expected.size,
        "fanout" => operations * expected.size * u64::from(expected.connections),
        _ => return Ok(()),
    };
    same("bytes", done.bytes.0, moved)?;
    match &done.latency {
        Some(latency) if expected.workload != Workload::Crr => same("latencies", latency.total(), operations),
        _ => Ok(()),
    }
}

/// Whole transfers or passes, one after the other until the time is over; at least one, on each connection.
fn right_repetitions(expected: &Spec, done: &Done, directions: u64) -> Result<(), String> {
    let (count, each, least) = match expected.bytes {
        Some(bytes) => (done.bytes.0, bytes * directions, u64::from(expected.connections)),
        None => (done.operations, expected.operations.unwrap_or(0), 1),
    };
    let repetitions = count / each;
    same("bytes or operations of whole transfers or passes", repetitions * each, count)?;
    if repetitions < least {
        return Err(format!("{repetitions} {TOO_FEW} {least} connections"));
    }
    // A program may read the clock once more before it decides that no transfer follows.
    let (elapsed, duration) = (done.end_ns.since(done.start_ns), expected.duration_ns.unwrap_or(Nanos::ZERO));
    if elapsed.0 < duration.0 / 2 {
        return Err(format!("it took {elapsed:?} of {duration:?}"));
    }
    if let Some(bytes) = expected.bytes {
        let writes = bytes.div_ceil(expected.size) * directions;
        same("operations", done.operations, repetitions * writes)?;
    }
    match &done.latency {
        Some(latency) if expected.bytes.is_some() => same("latencies", latency.total(), repetitions),
        _ => Ok(()),
    }
}

/// Some may be lost, but each is accounted for.
fn right_datagrams(expected: &Spec, done: &Done) -> Result<(), String> {
    let reported = done.datagrams.ok_or("datagrams are missing")?;
    let sent = expected.bytes.unwrap_or(0).div_ceil(expected.size) * u64::from(expected.connections);
    same("datagrams sent", reported.sent, sent)?;
    same("datagrams received or lost", reported.received + reported.lost, sent)?;
    same("operations", done.operations, reported.received)?;
    same("bytes", done.bytes.0, reported.received * expected.size)?;
    same("damaged or doubled datagrams", reported.damaged + reported.duplicates, 0)?;
    if reported.received == 0 { Err("no datagram arrived".into()) } else { Ok(()) }
}

fn same(what: &str, reported: u64, right: u64) -> Result<(), String> {
    if reported == right { Ok(()) } else { Err(format!("{reported} {what} instead of {right}")) }
}

/// An unknown layer is unsupported, with this option too: a program checks the options' names first.
fn refuses(program: &Path, option: Option<&str>) -> Result<(), String> {
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    spec.connect = Some(any_port());
    spec.operations = Some(1);
    spec.options.extend(option.map(|name| (name.to_owned(), "1".to_owned())));
    let json = spec.to_json().replace("\"http\"", "\"carrier-pigeon\"").replace("\"rr\"", "\"homing\"");
    ends_with(program, &json, linerate_contract::EXIT_UNSUPPORTED)
}

fn ends_with(program: &Path, argument: &str, status: i32) -> Result<(), String> {
    let ended = Program::start_with(program, argument)?.end()?;
    if ended.status != Some(status) {
        return Err(format!("exit status {:?} instead of {status}", ended.status));
    }
    if ended.stderr.trim().is_empty() { Err("nothing on stderr".into()) } else { Ok(()) }
}

/// An option that is not known ends the program with status 2 and the nearest known name.
fn refuses_unknown_options(program: &Path, described: &Describe) -> Result<(), String> {
    let (Some(role), Some(layer), Some(workload)) =
        (described.roles.first(), described.layers.first(), described.workloads.first())
    else {
        return Err("it describes no role, layer or workload".into());
    };
    let mut spec = Spec::new(*role, *layer, *workload);
    spec.set_option("directoin", "both");
    let ended = Program::start_with(program, &spec.to_json())?.end()?;
    let is_named = ["options.directoin", "direction"].iter().all(|name| ended.stderr.contains(name));
    if ended.status != Some(2) || !is_named {
        return Err(format!("exit status {:?} and {:?}", ended.status, ended.stderr));
    }
    Ok(())
}

/// Peers that disconnect, in the middle of a message or with a reset, end only their own connections.
fn survives(chosen: SystemVariant<'_>, program: &Path, layer: Layer) -> Result<(), String> {
    let mut server = Spec::new(Role::Server, layer, Workload::Rr);
    let mut client = Spec::new(Role::Client, layer, Workload::Rr);
    (server.listen, server.size) = (Some(any_port()), 100);
    server.options.extend(chosen.variant.options.clone());
    secure(&mut server, &mut client);
    let mut running = Program::start(program, &server)?;
    // Exit 127 is allowed.
    let Some(address) = running.ready_or_not()? else { return Ok(()) };
    for written in [0_usize, 50, 100_000] {
        let mut peer = TcpStream::connect(address).map_err(|e| format!("cannot connect: {e}"))?;
        // Unread response bytes turn the close into a reset.
        let _ = peer.write_all(&vec![b'x'; written]);
    }
    (client.connect, client.size, client.operations) = (Some(address), 100, Some(50));
    let own = common::program::native();
    let (started, options) = if chosen.plays(Role::Client) {
        (program, chosen.variant.options.clone())
    } else {
        (&*own, Default::default())
    };
    client.options = options;
    let done = Program::start(started, &client)?.done()?.ok_or("its client does not do rr")?;
    right(&client, &done)?;
    let _stays_open = TcpStream::connect(address);
    let start = Instant::now();
    running.stop()?;
    if start.elapsed() > Duration::from_secs(1) { Err(SLOW_STOP.into()) } else { Ok(()) }
}
