//! Scripts with responses by build.

use crate::common::{self, Folder, Output};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A machine on which a pipe takes 0.2 s for 1000 requests, in both builds unless a test has other responses.
pub(crate) struct Script {
    folder: Folder,
    head: String,
    systems: String,
    responses: String,
    /// Keys that every response has beside its own.
    beside: &'static str,
}

const UNITS: usize = 211;

impl Script {
    pub(crate) fn new(name: &str) -> Self {
        let systems = ["native = '1.0'", "fast = '2.0'", "slow = '3.0'", "none = ''"].join("\n");
        Self {
            folder: Folder::new(&format!("script-{name}")),
            head: String::new(),
            systems: systems + "\n'pipe@base' = '4.0'\n'pipe@head' = '4.1'\n",
            responses: String::new(),
            beside: "",
        }
    }

    /// Other processes and other guests use the CPUs, too: keys of each response.
    pub(crate) fn beside(self, keys: &'static str) -> Self {
        Self { beside: keys, ..self }
    }

    /// Cells by a glob: seconds, and the noise of a unit as a share.
    pub(crate) fn cell(self, cell: &str, seconds: f64, noise: f64) -> Self {
        self.cpu(cell, seconds, noise, 0.2)
    }

    /// With the CPU time of the relay.
    pub(crate) fn cpu(self, cell: &str, seconds: f64, noise: f64, relay: f64) -> Self {
        let all: Vec<f64> = (0..UNITS).map(|unit| seconds * (1.0 + noise * wave(unit, cell.len()))).collect();
        self.seconds(cell, &all, relay)
    }

    pub(crate) fn seconds(mut self, cell: &str, seconds: &[f64], relay: f64) -> Self {
        let cpu = format!("{{ client = 0.05, relay = {relay}, server = 0.06 }}");
        let _ =
            writeln!(self.responses, "[[responses]]\ncell = '{cell}'\nseconds = {seconds:?}\ncpu = {cpu}");
        self
    }

    /// The systems of these cells write these lines at their start.
    pub(crate) fn writes(mut self, cell: &str, lines: &[&str]) -> Self {
        self = self.cell(cell, 0.2, 0.003);
        let lines = serde_json::to_string(lines).unwrap();
        let _ = writeln!(self.responses, "stderr = {lines}");
        self
    }

    /// The measurement of these cells fails.
    pub(crate) fn fails(mut self, cell: &str, reason: &str) -> Self {
        let fails = format!("{{ stage = 'measure', reason = '{reason}' }}");
        let _ = writeln!(self.responses, "[[responses]]\ncell = '{cell}'\nfails = {fails}");
        self
    }

    /// Their verification fails in these rounds.
    pub(crate) fn fails_in(mut self, cell: &str, rounds: &[u32]) -> Self {
        self = self.cell(cell, 0.2, 0.0);
        let _ =
            writeln!(self.responses, "fails = {{ stage = 'verify', reason = 'odd', rounds = {rounds:?} }}");
        self
    }

    pub(crate) fn without(mut self, system: &str) -> Self {
        self.systems =
            self.systems.lines().filter(|line| !line.contains(system)).collect::<Vec<_>>().join("\n");
        self
    }

    /// Base and head are one program.
    pub(crate) fn with_one_build(mut self) -> Self {
        self.systems += "pipe = '4.0'\n";
        self.without("pipe@")
    }

    pub(crate) fn interrupted_at(mut self, trial: u32) -> Self {
        self.head = format!("interrupt_at = {trial}\n");
        self
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.run_in(Path::new("."), args)
    }

    /// With this current folder.
    pub(crate) fn run_in(&self, current: &Path, args: &[&str]) -> Output {
        self.run_by(Command::new(env!("CARGO_BIN_EXE_linerate")).args(args).current_dir(current))
    }

    /// By a command that starts linerate.
    pub(crate) fn run_by(&self, command: &mut Command) -> Output {
        let whole = Self {
            folder: Folder::new("unused"),
            head: String::new(),
            systems: String::new(),
            responses: String::new(),
            beside: "",
        };
        let usual = whole.cell("*/pipe*", 0.2, 0.003).responses;
        let host = "[host]\nkernel = '6.0-scripted'\ncpu_model = 'Scripted CPU'\ncpus = 4\n";
        let responses = format!("{}{usual}", self.responses);
        let responses = responses.replace("[[responses]]\n", &format!("[[responses]]\n{}\n", self.beside));
        let text = format!("{}{host}[systems]\n{}\n{responses}", self.head, self.systems);
        fs::create_dir_all(self.folder.path()).unwrap();
        let path = self.folder.path().join("script.toml");
        fs::write(&path, text).unwrap();
        let name = path.with_extension("");
        common::run_scripted(command, &common::tests().join("lab"), name.to_str().unwrap())
    }
}

/// Between -1.7 and 1.7, with a standard deviation of 1; by SplitMix64.
fn wave(unit: usize, shift: usize) -> f64 {
    let mut mixed = ((unit + 1_000 * shift) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    ((mixed >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * 12.0_f64.sqrt()
}
