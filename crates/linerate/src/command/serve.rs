//! `linerate serve`: the other end of `linerate load`.

use super::remark;
use crate::cli::{ServeArgs, Served};
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
    let Served::Http(args) = &args.what;
    let mut spec = Spec::new(Role::Server, "http", "http");
    spec.listen = Some(args.listen);
    spec.size = args.size;
    spec.threads = args.threads;
    let size = args.size;
    Engine::start(&spec)?.listen(&interrupt::watch(), |event| {
        if let Event::Ready { address } = event {
            remark(&format!("serving a page of {size} bytes at http://{address}/ until Ctrl-C"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
