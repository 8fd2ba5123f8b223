//! The selection of cells and rounds as what is asked of a session.

use super::argv::again;
use super::{CellFlags, RunArgs, RunFlags, Selection};
use crate::plan::Choice;
use crate::session::{HostRequest, Request, Why, fresh_seed};

impl From<&Selection> for Choice {
    fn from(selection: &Selection) -> Self {
        Self {
            suites: selection.suites.clone(),
            published: selection.published,
            complete: selection.complete,
            rounds: selection.rounds,
            probe: selection.probe,
            ..Self::from(&selection.cells)
        }
    }
}

impl From<&CellFlags> for Choice {
    fn from(cells: &CellFlags) -> Self {
        Self { quick: cells.quick, only: cells.only.clone(), ..Self::default() }
    }
}

impl From<&RunArgs> for Request {
    fn from(args: &RunArgs) -> Self {
        let hosts = HostRequest {
            places: args.hosts.host.iter().chain(&args.hosts.server_at).cloned().collect(),
            servers: Vec::new(),
            file: args.hosts.hosts.clone(),
            network: args.hosts.host_network || args.hosts.server_at.is_some(),
        };
        let selection = &args.selection;
        let request = request(Choice::from(selection), &selection.cells, &args.run, &[]);
        let why = if args.why { Why::Always } else { Why::Never };
        Self { budget: args.budget, hosts, is_bare: true, why, ..request }
    }
}

pub(super) fn request(choice: Choice, cells: &CellFlags, run: &RunFlags, keys: &[String]) -> Request {
    let drawn = cells.seed.is_none().then(fresh_seed);
    Request {
        choice,
        command: again(drawn, keys),
        seed: cells.seed.or(drawn).unwrap_or_default(),
        out: run.out.clone(),
        resume: run.resume.clone(),
        install: run.install,
        quiet: run.quiet,
        ..Request::default()
    }
}
