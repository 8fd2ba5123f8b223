//! `linerate serve`: the other end of `linerate load`.

use super::load::datagrams::set_kcp;
use super::remark;
use crate::cli::{ServeArgs, ServeDatagramArgs, Served};
use crate::engine::Engine;
use crate::error::Error;
use crate::interrupt;
use linerate_contract::{Event, Role, Spec};
use std::process::ExitCode;

/// Serves until Ctrl-C.
///
/// # Errors
/// The address cannot be had.
pub fn serve(args: &ServeArgs) -> Result<ExitCode, Error> {
    let spec = spec(&args.what);
    Engine::start(&spec)?.listen(&interrupt::watch(), |event| {
        if let Event::Ready { address } = event {
            let what = match spec.layer.as_str() {
                "http" => format!("serving a page of {} bytes at http://{address}/", spec.size),
                layer => format!("receiving {layer} at {address}"),
            };
            remark(&format!("{what} until Ctrl-C"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn spec(what: &Served) -> Spec {
    let datagrams = |layer: &str, args: &ServeDatagramArgs, size: u64| {
        let mut spec = Spec::new(Role::Server, layer, "stream");
        (spec.listen, spec.size) = (Some(args.listen), size);
        spec.options.insert("mode".into(), args.mode.name().into());
        spec
    };
    match what {
        Served::Http(args) => {
            let mut spec = Spec::new(Role::Server, "http", "http");
            (spec.listen, spec.size, spec.threads) = (Some(args.listen), args.size, args.threads);
            spec
        }
        Served::Udp(args) => datagrams("udp", &args.common, args.size),
        Served::Kcp(args) => {
            // Frames tell their own length, so any size will do.
            let mut spec = datagrams("kcp", &args.common, 1);
            set_kcp(&mut spec, &args.kcp);
            spec
        }
    }
}
