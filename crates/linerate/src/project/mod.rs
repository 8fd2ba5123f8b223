//! `linerate.toml` in a repository of the user's own: how its server is built and started, and what is asked
//! of it. Its keys are named as the options of `linerate compare`.

pub mod look;

use crate::error::Error;
use crate::home;
use crate::toml_file;
use linerate_contract::nearest::suggestion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use toml::{Table, Value};

/// A project with its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// The folder of the file; commands run in it.
    pub folder: PathBuf,
    pub settings: Settings,
}

/// The keys of the file, and those of each `[compare.NAME]`, which replace them. All but `start` and
/// `compare` are options of `linerate compare` with the same name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Shell command that builds a revision; without it, nothing is built.
    pub build: Option<String>,
    /// The command of the server, of which two revisions are compared; or several commands.
    pub start: Texts,
    pub name: Texts,
    /// Values of `-L`, by name.
    pub values: BTreeMap<String, Vec<String>>,
    pub with: Texts,
    pub upstream: Option<String>,
    pub setup: Texts,
    pub cleanup: Texts,
    pub url: Option<String>,
    pub method: Option<String>,
    pub header: Texts,
    pub body: Option<String>,
    pub requests: Option<PathBuf>,
    pub expect: Option<String>,
    pub https: bool,
    pub h2: bool,
    pub h3: bool,
    pub grpc: Option<String>,
    pub message: Option<String>,
    pub streams: Option<u16>,
    pub tcp: bool,
    pub udp: bool,
    pub ws: bool,
    pub size: Option<u64>,
    pub connections: Option<u32>,
    pub port: Option<u16>,
    pub network: Option<String>,
    pub rate: Option<Amount>,
    pub margin: Option<String>,
    pub margin_us: Option<Amount>,
    pub percentile: Option<String>,
    pub budget: Option<String>,
    pub compare: BTreeMap<String, Settings>,
}

/// One text, or a list of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "OneOrMany")]
pub struct Texts(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// A number, or a text with its unit; as it would be on the command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "NumberOrText")]
pub struct Amount(pub String);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Whole(u64),
    Number(f64),
    Text(String),
}

impl From<NumberOrText> for Amount {
    fn from(amount: NumberOrText) -> Self {
        match amount {
            NumberOrText::Whole(number) => Self(number.to_string()),
            NumberOrText::Number(number) => Self(number.to_string()),
            NumberOrText::Text(text) => Self(text),
        }
    }
}

impl From<OneOrMany> for Texts {
    fn from(texts: OneOrMany) -> Self {
        match texts {
            OneOrMany::One(text) => Self(vec![text]),
            OneOrMany::Many(all) => Self(all),
        }
    }
}

impl Project {
    /// The error of a value that its option refuses.
    pub fn error(&self, reason: &str) -> Error {
        Error::Input(format!("{}: {reason}", self.folder.join(home::PROJECT).display()))
    }

    /// The nearest one at or above the current folder.
    ///
    /// # Errors
    /// Its file is not valid, with the line.
    pub fn find() -> Result<Option<Self>, Error> {
        let Some(folder) = home::project() else { return Ok(None) };
        let path = folder.join(home::PROJECT);
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let settings: Settings = toml_file::parse(&path, &text)?;
        let all = || std::iter::once(&settings).chain(settings.compare.values());
        if let Some(nested) = settings.compare.values().find_map(|one| one.compare.keys().next()) {
            let path = path.display();
            return Err(Error::Input(format!("{path}: compare.*.compare.{nested}: it is in itself")));
        }
        if let Some(empty) = all().flat_map(|one| &one.start.0).find(|start| start.trim().is_empty()) {
            return Err(Error::Input(format!("{}: start = {empty:?} is no command", path.display())));
        }
        Ok(Some(Self { folder, settings }))
    }

    /// The settings of a named comparison, or those of the file itself.
    ///
    /// # Errors
    /// There is none of this name, with the nearest one; or it has no `start`.
    pub fn comparison(&self, name: Option<&str>) -> Result<Settings, Error> {
        let place = self.folder.join(home::PROJECT).display().to_string();
        let found = match name {
            None => self.settings.clone(),
            Some(name) => {
                let known = self.settings.compare.keys().map(String::as_str);
                let found = self.settings.compare.get(name).ok_or_else(|| {
                    Error::Input(format!("{place}: there is no compare.{name}; {}", suggestion(name, known)))
                })?;
                found.over(&self.settings)
            }
        };
        if found.start.0.is_empty() {
            let names: Vec<&str> = self.settings.compare.keys().map(String::as_str).collect();
            let named = if names.is_empty() { String::new() } else { format!(", or name one of {names:?}") };
            return Err(Error::Input(format!(
                "{place}: there is no command to start: add start = \"./server\"{named}"
            )));
        }
        Ok(found)
    }

    /// The settings of a comparison as options: those of its own, and the others. Flags have no value, lists
    /// have several.
    ///
    /// One command is compared in two revisions of the folder. Several are built by their setups.
    pub fn options(&self, name: Option<&str>, settings: &Settings) -> [Vec<(String, Vec<String>)>; 2] {
        let is_of_revisions = settings.start.0.len() == 1 && settings.values.is_empty();
        let setups = settings.setup.clone();
        let (build, setup) = match (settings.build.clone(), setups.0.len()) {
            (build, _) if is_of_revisions => (build.or(Some("true".into())), setups),
            (None, _) => (None, setups),
            (Some(build), 0) => (None, Texts(vec![build])),
            (Some(build), _) => {
                (None, Texts(setups.0.iter().map(|setup| format!("{build} && {setup}")).collect()))
            }
        };
        let mut all = given(&Settings { build, setup, ..settings.clone() });
        all.remove("start");
        if is_of_revisions {
            all.insert("checkout".into(), self.folder.display().to_string().into());
        }
        let own = given(name.and_then(|name| self.settings.compare.get(name)).unwrap_or(&self.settings));
        let all = all.into_iter().map(|(name, value)| (name, texts(&value)));
        let (own, others) = all.partition(|(name, _)| own.contains_key(name));
        [own, others]
    }
}

impl Settings {
    /// With those of `outer` where these have none.
    fn over(&self, outer: &Self) -> Self {
        let mut all = given(outer);
        all.extend(given(self));
        all.try_into().expect("these are settings")
    }
}

/// The keys that have a value, without other comparisons.
fn given(settings: &Settings) -> Table {
    let mut all = Table::try_from(settings).expect("all keys are text");
    all.remove("compare");
    all.retain(|_, value| match value {
        Value::Boolean(is_given) => *is_given,
        Value::Array(all) => !all.is_empty(),
        Value::Table(all) => !all.is_empty(),
        _ => true,
    });
    all
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Boolean(_) => Vec::new(),
        Value::Array(all) => all.iter().map(text).collect(),
        Value::Table(lists) => lists.iter().flat_map(|(name, list)| [name.clone(), text(list)]).collect(),
        one => vec![text(one)],
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Integer(number) => number.to_string(),
        other => unreachable!("settings are texts, whole numbers and flags: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn project(text: &str) -> Project {
        let settings = toml_file::parse(Path::new("linerate.toml"), text).unwrap();
        Project { folder: PathBuf::from("/shop"), settings }
    }

    #[test]
    fn a_named_comparison_replaces_the_settings_that_it_has() {
        let project = project(
            "start = './shop'\nurl = '/api'\nmargin = '2%'\n\
             [compare.threads]\nstart = ['./shop -t 1', './shop -t 4']\nmargin = '5%'\n",
        );
        let threads = project.comparison(Some("threads")).unwrap();
        assert_eq!(threads.start.0, ["./shop -t 1", "./shop -t 4"]);
        assert_eq!((threads.url.as_deref(), threads.margin.as_deref()), (Some("/api"), Some("5%")));
        assert_eq!(project.comparison(None).unwrap().start.0, ["./shop"]);
        let error = project.comparison(Some("thread")).unwrap_err().to_string();
        assert!(error.contains("compare.thread; nearest: \"threads\""), "{error}");
    }

    #[test]
    fn a_rate_is_a_number_or_a_share() {
        let project = project("start = './shop'\nrate = '50%'\n[compare.fast]\nrate = 5000\n");
        let rate = |name| project.comparison(name).unwrap().rate.unwrap().0;
        assert_eq!([rate(None), rate(Some("fast"))], ["50%", "5000"]);
    }

    #[test]
    fn a_file_without_a_command_is_refused_with_what_to_add() {
        let error = project("url = '/'\n").comparison(None).unwrap_err().to_string();
        assert!(error.contains("/shop/linerate.toml") && error.contains("add start ="), "{error}");
        let path = Path::new("linerate.toml");
        let error = toml_file::parse::<Settings>(path, "strat = './x'").unwrap_err().to_string();
        assert!(error.contains("nearest: \"start\""), "{error}");
    }
}
