//! `linerate systems`.

use super::{Terminal, print};
use crate::cli::SystemsArgs;
use crate::error::Error;
use crate::home;
use crate::output::note;
use crate::programs::Machine;
use crate::report::{Style, plain_table};
use crate::system::build::Permission;
use crate::system::build::prune::{Pruned, prune};
use crate::system::probe::Presence;
use crate::system::{Registry, SystemVariant, install};
use comfy_table::{Attribute, Cell, Color};
use linerate_contract::Bytes;
use linerate_contract::nearest::suggestion;
use std::process::ExitCode;

/// Lists systems, ready or missing; installs missing ones or removes unused builds on request.
///
/// # Errors
/// An unknown name, or a build that cannot be removed.
pub fn systems(args: &SystemsArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let registry = Registry::load(&home::find()?)?;
    if args.prune {
        return print(&pruned_text(&prune(&registry)?));
    }
    for name in &args.names {
        if !registry.variants().any(|chosen| is_named(chosen, name)) {
            let systems = registry.systems.keys().map(String::as_str);
            let known = systems.chain(registry.variants().map(|chosen| chosen.name));
            return Err(Error::Input(format!("no system or variant `{name}`; {}", suggestion(name, known))));
        }
    }
    if args.install {
        // Without root, or without apt-get, builds can still succeed.
        if let Err(error) = install::install(&install::packages(&registry, &args.names), note) {
            note(&format!("linerate: {error}"));
        }
    }
    let permission = if args.install { Permission::Build(&note) } else { Permission::Never };
    let mut machine = Machine::new(permission, None);
    let wanted = |variant: &SystemVariant<'_>| {
        args.names.is_empty() || args.names.iter().any(|name| is_named(*variant, name))
    };
    machine.prepare(registry.variants().filter(wanted));
    let rows: Vec<_> =
        registry.variants().filter(wanted).map(|chosen| (chosen, machine.presence(chosen))).collect();
    machine.check()?;
    print(&table(&rows, terminal.style))
}

/// A line for each removed build, and the sum.
fn pruned_text(pruned: &Pruned) -> String {
    let line = |size: Bytes, text: String| format!("{:>8.1} MiB  {text}\n", size.as_mib_f64());
    let all = Bytes(pruned.removed.iter().map(|(_, size)| size.0).sum());
    let removed: String =
        pruned.removed.iter().map(|(name, size)| line(*size, format!("removed {name}"))).collect();
    removed + &line(all, format!("freed: {} builds removed, {} kept", pruned.removed.len(), pruned.kept))
}

fn table(rows: &[(SystemVariant<'_>, Presence)], style: Style) -> String {
    let mut table = plain_table(style);
    table.set_header(["variant", "roles", "state", "version", "description, or install command"]);
    for (chosen, presence) in rows {
        let roles: Vec<String> = chosen.variant.roles.iter().map(ToString::to_string).collect();
        let (state, colour, version, text) = match presence {
            Presence::Ready { version, .. } => (
                "ready",
                Color::Green,
                version.clone().unwrap_or_else(|| "-".into()),
                chosen.variant.about.clone(),
            ),
            Presence::Missing { reason, install } => {
                ("missing", Color::Yellow, "-".into(), format!("{reason}: {install}"))
            }
        };
        let mut state = Cell::new(state);
        if style.colour {
            state = state.fg(colour).add_attribute(Attribute::Bold);
        }
        table.add_row([
            Cell::new(chosen.name),
            Cell::new(roles.join(", ")),
            state,
            Cell::new(version),
            Cell::new(text),
        ]);
    }
    table.trim_fmt() + "\n"
}

fn is_named(chosen: SystemVariant<'_>, name: &str) -> bool {
    chosen.name == name || chosen.system.name == name
}
