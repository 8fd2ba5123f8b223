//! Paths as suites describe them.

use crate::common::{Folder, Named, Output};
use crate::host::{assert_all_gone, host_state, lab_processes};
use crate::{command, is_ok, machine};
use linerate::measurement::Measurement;
use std::fs;
use std::path::Path;

const SUITE: &str = include_str!("paths.toml");

fn home() -> Folder {
    let home = Folder::new("paths-home");
    let systems = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    fs::create_dir_all(home.path().join("suites")).unwrap();
    fs::create_dir_all(home.path().join("systems")).unwrap();
    fs::write(home.path().join("suites/paths.toml"), SUITE).unwrap();
    for name in ["direct", "native", "nftables"] {
        std::os::unix::fs::symlink(systems.join(name), home.path().join("systems").join(name)).unwrap();
    }
    home
}

#[test]
fn relays_on_their_routers_and_impaired_links_are_as_described() {
    let Some(_machine) = machine() else { return };
    let (state, processes) = (host_state(), lab_processes());
    let (home, folder) = (home(), Folder::new("paths"));
    let out =
        Output::run(command(&["run", "paths", "--out", folder.str()]).env("LINERATE_HOME", home.path()));
    assert_eq!(out.status, 0, "{}", out.stderr);
    let trials = folder.trials();
    let failed: Vec<&Named> = trials.iter().filter(|trial| !is_ok(trial)).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let of = |cell: &str| -> &Measurement {
        let trial = trials.iter().find(|trial| trial.id == cell).unwrap_or_else(|| panic!("{cell}"));
        trial.measurement().unwrap()
    };
    // Without nft(8) its rows are missing.
    let routers = trials.iter().filter(|trial| trial.id.starts_with("routers/")).count();
    assert!([2, 6].contains(&routers), "{}", out.stdout);
    assert!(of("routers/native-splice/direct").wires.is_empty(), "no link is impaired");

    let echo = |cell: &str| of(cell).latency.as_ref().unwrap().percentile(50.0).unwrap();
    let delay = echo("echoes/veth/10ms") as f64 - echo("echoes/veth/0") as f64;
    assert!((9.5e6..20e6).contains(&delay), "a busy machine is late, but never early: {delay}");

    for (rate, bits) in [("5Mbit", 5e6), ("20Mbit", 20e6)] {
        for loss in ["0", "5%"] {
            let measurement = of(&format!("streams/{rate}/{loss}"));
            let goodput = measurement.bytes.0 as f64 * 8.0 / measurement.elapsed.as_secs_f64();
            // 1,472 bytes of each frame of 1,514 are payload; a second of a busy machine may have gaps.
            let most = bits * 1_472.0 / 1_514.0 * 1.02;
            assert!((0.5 * most..=most).contains(&goodput), "{rate} {loss}: {goodput}");
            let up = measurement.wires[0].up.expect("the relay counts");
            assert_eq!(measurement.wires[0].means, "relay");
            let share = up.lost as f64 / up.packets as f64;
            let expected = if loss == "0" { 0.0 } else { 0.05 };
            // Some thousand packets.
            assert!((share - expected).abs() < 0.02, "{rate} {loss}: {share}");
            assert!(up.overflowed > 0, "the queue of the rate drops the rest");
        }
    }
    assert_all_gone(&processes);
    assert_eq!(host_state(), state, "the host has changed");
}
