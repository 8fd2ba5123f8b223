use super::*;
use crate::measurement::PlannedCommand;
use linerate_contract::{Layer, Workload};

fn load() -> PlannedLoad {
    let json = serde_json::json!({
        "folder": "/", "port": 8080, "connections": 4, "threads": 1,
        "requests": [{"method": "GET", "path": "/items"}],
    });
    serde_json::from_value(json).unwrap()
}

fn command(name: &str) -> Subject {
    let line = "sh -c 'listen {port}'".into();
    Subject::Command(PlannedCommand { name: name.into(), line, ..PlannedCommand::default() })
}

fn address() -> Subject {
    let json = serde_json::json!({"address": {
        "name": "new", "url": "http://box2/own", "target": {"host": "box2", "path": "/own"},
        "address": "10.0.0.2:80", "further": ["10.0.0.3:80"],
    }});
    serde_json::from_value(json).unwrap()
}

fn cell(id: &str) -> PlannedCell {
    PlannedCell { id: id.into(), ..PlannedCell::default() }
}

#[test]
fn in_this_machines_network_each_side_has_a_port_of_its_own_which_is_that_of_its_command() {
    let load = PlannedLoad { place: Place::Local, ..load() };
    let mut servers = Servers::new(&[command("a"), command("b")], &load, Learned::default());
    servers.read_companions().unwrap();
    servers.read_lines().unwrap();
    servers.learned.servers[1].address = Some(([127, 0, 0, 1], 1).into());
    let (server, pins) =
        (servers.of_cell(&cell("b")).unwrap(), crate::pins::assign(&[0], &[Role::Server], 1));
    let ports = [0, 1].map(|side| server.address(side).unwrap().port());
    assert!(ports[0] != ports[1] && !ports.contains(&1), "{ports:?}");
    for (side, port) in ports.into_iter().enumerate() {
        let launch = server.launch(&pins, None, side).unwrap();
        assert_eq!((launch.port, &*launch.process.unwrap().1[1]), (port, &*format!("listen {port}")));
        assert_eq!(launch.user.unwrap().environment["PORT"], port.to_string());
    }
}

#[test]
fn an_address_is_asked_by_its_host_and_path_and_nothing_is_started() {
    let servers = Servers::new(&[command("old"), address()], &load(), Learned::default());
    let (asked, pins) =
        (servers.of_cell(&cell("new")).unwrap(), crate::pins::assign(&[0], &[Role::Server], 1));
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    asked.ask(&mut spec, 1);
    assert_eq!((spec.path.as_deref(), spec.options.get("patience_ms")), (Some("/own"), None));
    assert_eq!(spec.request.unwrap().host.as_deref(), Some("box2"));
    assert_eq!(spec.further, ["10.0.0.3:80".parse().unwrap()], "connections go to both addresses in turn");
    assert!(asked.launch(&pins, None, 0).is_none() && !servers.are_started_here());
    assert_eq!(asked.address(0).unwrap().to_string(), "10.0.0.2:80");
}

#[test]
fn the_turn_of_servers_that_cannot_be_stopped_is_of_several_responses() {
    let turn = |subjects: &[Subject], response: u64| {
        let warmup =
            Warmup { time: Nanos(1), is_steady: true, response: Nanos(response), waits: false, served: None };
        let known = LearnedServer { address: None, warmup: Some(warmup) };
        let learned = Learned { servers: vec![known; 2], ..Learned::default() };
        Servers::new(subjects, &load(), learned).turn()
    };
    let running = [address(), address()];
    assert_eq!(
        [100_000, 1_000_000, 2_500_000].map(|response| turn(&running, response)),
        [Some(SHORTEST_TURN), Some(Nanos(16_000_000)), Some(LONGEST_TURN)]
    );
    assert_eq!(turn(&running, 10_000_000), None);
    assert_eq!(turn(&[command("a"), command("b")], 100_000), None);
}

#[test]
fn one_server_alone_is_that_of_every_cell() {
    let alone = Servers::new(&[address()], &load(), Learned::default());
    assert_eq!(alone.of_cell(&cell("nginx/direct")).unwrap().subject().name(), "new");
    let two = Servers::new(&[command("a"), command("b")], &load(), Learned::default());
    assert!(two.of_cell(&cell("nginx/direct")).is_none());
}

#[test]
fn what_is_learned_is_beside_the_plan_and_a_cell_is_warmed_up_by_it() {
    let warmup =
        Warmup { time: Nanos(1), is_steady: true, response: Nanos(10_000_000), waits: false, served: None };
    let known = LearnedServer { address: None, warmup: Some(warmup) };
    let expected = Expectation { status: Some(204), ..Expectation::default() };
    let expectations = vec![expected];
    let learned = Learned { servers: vec![known; 2], expectations, ..Learned::default() };
    let servers = Servers::new(&[command("a"), command("b")], &load(), learned);
    let warmed = servers.server(1).warmed(&cell("b"));
    assert_eq!((warmed.verify.operations, warmed.warm_for), (Some(5), Some(SHORTEST_WARMUP)));
    let own = PlannedCell { warm_for: Some(Nanos(7)), ..cell("b") };
    assert_eq!(servers.server(1).warmed(&own).warm_for, Some(Nanos(7)), "that of a launch of calls");
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    servers.server(1).ask(&mut spec, 1);
    assert_eq!(spec.expect.and_then(|expect| expect.status), Some(204));
    assert_eq!(servers.load, load());
}

#[test]
fn options_of_the_client_and_headers_of_an_upgrade_are_those_of_every_unit() {
    let mut load = PlannedLoad { layer: Layer::Wss, size: Some(64), ..load() };
    load.options.insert("handshake".into(), "resumed".into());
    load.requests[0].headers.push("Origin: https://shop.test".into());
    let servers = Servers::new(&[command("old"), address()], &load, Learned::default());
    for (server, host, path) in
        [(servers.server(0), None, "/items"), (servers.server(1), Some("box2"), "/own")]
    {
        let mut spec = Spec::new(Role::Client, load.layer, Workload::Rr);
        server.ask(&mut spec, 1);
        let request = spec.request.clone().unwrap();
        assert_eq!((spec.option("handshake"), spec.path.as_deref()), (Some("resumed"), Some(path)));
        assert_eq!((request.host.as_deref(), &*request.headers[0]), (host, "Origin: https://shop.test"));
        assert!(request.insecure);
    }
}
