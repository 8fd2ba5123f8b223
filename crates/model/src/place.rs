//! Where processes are: one notion for roles, for servers that run already, and for networks.

use crate::url::Url;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where the processes of a role or of a run are. Its text is that of the command line and of `run.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Place {
    /// Namespaces of this machine, which end with linerate: `lab`.
    #[default]
    Lab,
    /// The machine itself, with its own network: `local`.
    Local,
    /// A machine that ssh(1) reaches: `ssh:NAME`.
    Ssh(String),
    /// A server that runs already: its URL, such as `http://box:8080/path`.
    Url(String),
}

const LAB: &str = "lab";
const LOCAL: &str = "local";
const SSH: &str = "ssh:";

impl Place {
    /// The name of a machine, as hosts.toml has it.
    pub fn machine(&self) -> Option<&str> {
        match self {
            Self::Ssh(name) => Some(name),
            Self::Local => Some(LOCAL),
            Self::Lab | Self::Url(_) => None,
        }
    }

    pub fn is_lab(&self) -> bool {
        *self == Self::Lab
    }

    /// The URL of a server that runs already: nothing is started there.
    pub fn served_at(&self) -> Option<Url> {
        match self {
            Self::Url(url) if Url::has_scheme(url) => Url::parse(url).ok(),
            _ => None,
        }
    }
}

impl FromStr for Place {
    type Err = String;

    /// A name that ssh(1) would take for an option is no place.
    fn from_str(text: &str) -> Result<Self, String> {
        let place = match text {
            LAB => Self::Lab,
            LOCAL => Self::Local,
            _ => match text.strip_prefix(SSH) {
                Some(name) if !name.is_empty() && !name.starts_with('-') => Self::Ssh(name.to_owned()),
                _ => Self::Url(text.to_owned()),
            },
        };
        match place {
            Self::Url(_) if place.served_at().is_none() => {
                Err(format!("`{text}`: expected local or ssh:NAME"))
            }
            place => Ok(place),
        }
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.to_string()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lab => f.write_str(LAB),
            Self::Local => f.write_str(LOCAL),
            Self::Ssh(name) => write!(f, "{SSH}{name}"),
            Self::Url(url) => f.write_str(url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written_and_what_ssh_takes_for_an_option_is_none() {
        for text in ["lab", "local", "ssh:box2", "http://box2:8080/a"] {
            assert_eq!(text.parse::<Place>().map(|place| place.to_string()), Ok(text.to_owned()));
        }
        for text in ["box2", "ssh:", "ssh:-oProxyCommand=x", "http://box2:x/", "ftp://box2"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_url_without_a_port_or_a_path_has_those_of_http() {
        let place = Place::Url("http://box2".into());
        let url = place.served_at().unwrap();
        assert_eq!((url.authority().as_str(), url.port, url.path.as_str()), ("box2", 80, "/"));
    }
}
