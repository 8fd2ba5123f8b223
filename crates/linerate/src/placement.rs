//! Which machine plays which role: `--host ROLE=WHERE` and hosts.toml.

use crate::address;
use crate::bounded;
use crate::error::Error;
use crate::lab::Site;
use crate::lab::hosts::Server;
use crate::lab::listening::Port;
use crate::measurement::{Place, PlannedCell, PlannedComparison, PlannedHost, PlannedSuite, Subject};
use crate::toml_file;
use crate::url::Url;
use linerate_contract::nearest::suggestion;
use linerate_contract::{Layer, Role};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;

/// Read from the current folder where `--hosts` names no other file.
const FILE: &str = "hosts.toml";
/// Roles that have a place; a cell need not have all of them.
const ROLES: [Role; 3] = [Role::Client, Role::Relay, Role::Server];

/// `ROLE=WHERE` of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolePlace {
    role: Role,
    place: Place,
}

impl fmt::Display for RolePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.role, self.place)
    }
}

/// Parses `server=ssh:box2`.
///
/// # Errors
/// The text is no place of a role; the message has the expected form.
pub fn role_place(text: &str) -> Result<RolePlace, String> {
    let expected = || "expected ROLE=local or ROLE=ssh:NAME, such as server=ssh:box2".to_owned();
    let (role, place) = text.split_once('=').ok_or_else(expected)?;
    let names = ROLES.map(|role| role.to_string());
    let role = ROLES.into_iter().find(|known| known.to_string() == role).ok_or_else(|| {
        format!("there is no role `{role}`; {}", suggestion(role, names.iter().map(String::as_str)))
    })?;
    if role == Role::Server && Url::has_scheme(place) {
        return server_at(place);
    }
    match place.parse().map_err(|_| expected())? {
        Place::Lab | Place::Url(_) => Err(expected()),
        place => Ok(RolePlace { role, place }),
    }
}

/// Parses the URL of `--server-at`.
///
/// # Errors
/// The text is no URL; the message has the expected form.
pub fn server_at(url: &str) -> Result<RolePlace, String> {
    match Url::parse(url)? {
        url if url.scheme.layer == Layer::Http => {
            Ok(RolePlace { role: Role::Server, place: Place::Url(url.to_string()) })
        }
        url => Err(format!("suites load http:// alone, and this is {}://", url.scheme.name)),
    }
}

/// A table of hosts.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HostEntry {
    /// The destination for ssh(1), such as `user@box2.example`.
    ssh: Option<String>,
    options: Vec<String>,
    address: Option<Ipv4Addr>,
    cpus: Vec<u32>,
    agent: Option<String>,
}

/// The machines of the roles; empty if all roles are local.
///
/// # Errors
/// A role has two places, or hosts.toml cannot be read or has no such machine.
pub fn hosts(given: &[RolePlace], file: Option<&Path>) -> Result<Vec<PlannedHost>, Error> {
    let mut places: BTreeMap<Role, &Place> = BTreeMap::new();
    for RolePlace { role, place } in given {
        if places.insert(*role, place).is_some() {
            return Err(Error::Input(format!("--host: the {role} has two places; give one of them")));
        }
    }
    if places.values().all(|place| **place == Place::Local) {
        return Ok(Vec::new());
    }
    let mut entries = read(file)?;
    let mut hosts: Vec<PlannedHost> = Vec::new();
    for role in ROLES {
        let place = places.get(&role).copied().unwrap_or(&Place::Local);
        match hosts.iter_mut().find(|host| host.place == *place) {
            Some(host) => host.roles.push(role),
            None => hosts.push(planned(role, place, &mut entries)?),
        }
    }
    Ok(hosts)
}

/// Where a run takes place: on the machines of its roles, or on this one, beside servers that are watched.
///
/// # Errors
/// hosts.toml cannot be read.
pub fn site(
    hosts: &[PlannedHost],
    comparison: Option<&PlannedComparison>,
    file: Option<&Path>,
) -> Result<Site, Error> {
    if !hosts.is_empty() {
        return Ok(Site::Roles(hosts.to_vec()));
    }
    let Some((subjects, load)) = comparison.and_then(PlannedComparison::servers) else {
        return Ok(Site::Here(Place::Lab, Vec::new()));
    };
    let (mut watched, mut here) = (Vec::new(), Vec::new());
    for known in subjects.iter().filter_map(Subject::address) {
        let port = Port { number: known.address.port(), is_udp: load.is_of_datagrams() };
        match &known.watched_on {
            Some(place) => {
                let host = planned(Role::Server, place, &mut read(file)?)?;
                watched.push(Server { cell: known.name.clone(), host, port });
            }
            None if is_of_this_machine(known.address.ip()) => here.push(port),
            None => {}
        }
    }
    Ok(if watched.is_empty() { Site::Here(load.place.clone(), here) } else { Site::Watched(watched) })
}

/// An address of one of this machine's interfaces, since a socket can be bound to it.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Parses `NAME=local` or `NAME=ssh:BOX`.
///
/// # Errors
/// The text is no place of a server; the message has the expected form.
pub fn server_place(text: &str) -> Result<(String, Place), String> {
    let (name, place) = text.rsplit_once('=').unwrap_or_default();
    match place.parse() {
        Ok(place @ (Place::Local | Place::Ssh(_))) if !name.is_empty() => Ok((name.to_owned(), place)),
        _ => Err("expected NAME=ssh:BOX or NAME=local, such as new=ssh:box2".into()),
    }
}

fn planned(
    role: Role,
    place: &Place,
    entries: &mut BTreeMap<String, HostEntry>,
) -> Result<PlannedHost, Error> {
    let entry = place.machine().and_then(|name| entries.remove(name)).unwrap_or_default();
    let host = PlannedHost {
        place: place.clone(),
        roles: vec![role],
        address: entry.address,
        cpus: entry.cpus,
        destination: entry.ssh,
        ssh_options: entry.options,
        agent: entry.agent,
        ..PlannedHost::default()
    };
    let Some(url) = host.place.served_at() else { return Ok(host) };
    match address::usual(&url)?.ip() {
        IpAddr::V4(found) => Ok(PlannedHost { address: Some(found), ..host }),
        IpAddr::V6(_) => Err(Error::NothingMeasured(format!("{place}: {} has no IPv4 address", url.host))),
    }
}

/// The server that runs already, among the machines of a run.
pub fn served(hosts: &[PlannedHost]) -> Option<&PlannedHost> {
    hosts.iter().find(|host| host.place.served_at().is_some())
}

/// The captions of tables whose server runs already.
pub fn with_captions(suites: &mut [PlannedSuite], hosts: &[PlannedHost]) {
    let Some(host) = served(hosts) else { return };
    let note = format!(
        "the server of every row is the one at {}, whatever its name is here; it was not started, and its \
         CPU time is not known",
        host.place
    );
    suites.iter_mut().flat_map(|suite| &mut suite.tables).for_each(|table| table.notes.push(note.clone()));
}

fn read(file: Option<&Path>) -> Result<BTreeMap<String, HostEntry>, Error> {
    let path = file.unwrap_or(Path::new(FILE));
    if file.is_none() && !path.exists() {
        return Ok(BTreeMap::new());
    }
    let text = bounded::text(path)?;
    toml_file::parse(path, &text)
}

/// Pairs of cells are compared by their solo trials: a duet needs both sides on common CPUs, and clocks that
/// agree about turns.
pub fn without_duets(suites: &mut [PlannedSuite]) {
    for pair in suites.iter_mut().flat_map(|suite| &mut suite.pairs) {
        pair.no_duet.get_or_insert_with(|| "the roles are on several hosts".to_owned());
    }
}

/// The place of a role among `hosts`; the first for a run on one machine.
pub fn index_of(hosts: &[PlannedHost], role: Role) -> usize {
    hosts.iter().position(|host| host.roles.contains(&role)).unwrap_or(0)
}

/// Why a cell cannot run over several machines. Links, routers and loopback devices are replaced by the real
/// network.
pub fn obstacle(cell: &PlannedCell) -> Option<&'static str> {
    let is_impaired = cell.path.links.iter().any(|link| link.up.is_some() || link.down.is_some());
    if cell.path.has_tun() {
        Some("its path is a TUN device, which a process of the same host serves")
    } else if is_impaired {
        Some("packets are impaired in namespaces of one host")
    } else if cell.path.routers() > 1 {
        Some("several routers are namespaces of one host")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(texts: &[&str]) -> Vec<RolePlace> {
        texts.iter().map(|text| role_place(text).unwrap()).collect()
    }

    #[test]
    fn roles_without_a_place_are_local_and_roles_of_one_place_share_a_host() {
        let none = Path::new("/dev/null");
        let hosts = hosts(&given(&["server=ssh:box2", "relay=ssh:box2"]), Some(none)).unwrap();
        let roles: Vec<_> = hosts.iter().map(|host| (host.place.to_string(), host.roles.clone())).collect();
        let expected = [("local", vec![Role::Client]), ("ssh:box2", vec![Role::Relay, Role::Server])];
        assert_eq!(roles, expected.map(|(place, roles)| (place.to_owned(), roles)));
        assert_eq!((index_of(&hosts, Role::Server), hosts[1].ssh_destination()), (1, Some("box2")));
        assert_eq!(hosts[0].ssh_destination(), None);
        assert_eq!(super::hosts(&given(&["server=local"]), Some(none)).unwrap(), []);
    }

    #[test]
    fn a_wrong_place_names_what_is_expected() {
        for (text, part) in [
            ("server", "ROLE=ssh:NAME"),
            ("server=box2", "ROLE=ssh:NAME"),
            ("server=ssh:-oProxyCommand=x", "ROLE=ssh:NAME"),
            ("client=http://box2/", "ROLE=ssh:NAME"),
            ("server=http://box2:x/", "no port"),
            ("server=h2://box2/", "http:// alone"),
            ("sever=ssh:box2", "nearest: \"server\""),
        ] {
            let error = role_place(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let twice = hosts(&given(&["server=ssh:a", "server=ssh:b"]), None).unwrap_err();
        assert!(twice.to_string().contains("two places"), "{twice}");
    }
}
