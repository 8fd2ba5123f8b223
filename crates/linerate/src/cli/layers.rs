//! `linerate.toml` in a repository of the user's own: how its server is built and started, and what is asked
//! of it. Its keys are the flags of [`Settings`], by their long names. What is nearer replaces what is
//! further away: the command line, `[compare.NAME]`, the file.

use super::{CompareFlags, GivenServers, Settings};
use crate::bounded;
use crate::error::Error;
use crate::home;
use crate::toml_file;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use linerate_contract::nearest::suggestion;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Spanned;

/// The key of the command of the server, of which two revisions are compared; or of several commands. All
/// others are flags.
const START: &str = "start";

/// Keys with their values.
type Layer = BTreeMap<String, Value>;
/// With their places in the file.
type Placed = BTreeMap<Spanned<String>, Value>;

/// The tables `[compare.NAME]`.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    compare: BTreeMap<String, Placed>,
}

/// A project with its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// The folder of the file; commands run in it.
    folder: PathBuf,
    own: Layer,
    named: BTreeMap<String, Layer>,
}

impl Project {
    /// The nearest one at or above the current folder.
    ///
    /// # Errors
    /// Its file is not valid, with the line.
    pub fn find() -> Result<Option<Self>, Error> {
        let Some(folder) = home::project()? else { return Ok(None) };
        let path = folder.join(home::PROJECT);
        let text = bounded::text(&path)?;
        Self::parse(folder, &text).map(Some)
    }

    fn parse(folder: PathBuf, text: &str) -> Result<Self, Error> {
        let path = folder.join(home::PROJECT);
        let mut own: Placed = toml_file::parse(&path, text)?;
        own.retain(|key, _| key.get_ref() != "compare");
        let Named { compare } = toml_file::parse(&path, text)?;
        let checked = |keys: Placed| {
            checked(keys).map_err(|(at, reason)| {
                let line = text[..at.min(text.len())].matches('\n').count() + 1;
                Error::Input(format!("{}:{line}: {reason}", path.display()))
            })
        };
        let named = compare.into_iter().map(|(name, keys)| Ok((name, checked(keys)?)));
        Ok(Self { named: named.collect::<Result<_, Error>>()?, own: checked(own)?, folder })
    }

    /// True if the file has a comparison of this name.
    pub fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }

    /// The servers of a named comparison, or of the file itself, and the flags of the command line with those
    /// of the file where it has none, and nothing that excludes them.
    ///
    /// # Errors
    /// There is no command to start.
    pub fn complete(
        &self,
        name: Option<&str>,
        given: &CompareFlags,
    ) -> Result<(GivenServers, CompareFlags), Error> {
        let place = self.folder.join(home::PROJECT).display().to_string();
        let mut all = Layer::new();
        let flags = flags();
        for layer in name.and_then(|name| self.named.get(name)).into_iter().chain([&self.own]) {
            let nearer: Vec<String> = given.given.names().chain(all.keys().cloned()).collect();
            let is_replaced = |key: &str| nearer.iter().any(|nearer| replaces(&flags, nearer, key));
            all.extend(layer.clone().into_iter().filter(|(key, _)| !is_replaced(key)));
        }
        let keys = all.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let start = all.remove(START).map(|start| texts(&start)).unwrap_or_default();
        if start.is_empty() {
            let names: Vec<&String> = self.named.keys().collect();
            let named = if names.is_empty() { String::new() } else { format!(", or name one of {names:?}") };
            return Err(Error::Input(format!(
                "{place}: there is no command to start: add start = \"./server\"{named}"
            )));
        }
        let mut settings = given.settings.clone();
        let matches = parsed(&flags, &all);
        let updated = matches.and_then(|matches| {
            settings.update_from_arg_matches(&matches).map_err(|refusal| words_of(&refusal))
        });
        updated.map_err(|reason| Error::Input(format!("{place}: {reason}")))?;
        let is_of_revisions = start.len() == 1 && settings.subjects.values.is_empty();
        let mut builds = given.builds.clone();
        if is_of_revisions {
            builds.checkout.get_or_insert_with(|| self.folder.clone());
        } else {
            settings.subjects.build_in_setup();
        }
        let servers =
            GivenServers { lines: start, folder: Some(self.folder.clone()), keys, ..GivenServers::default() };
        Ok((servers, CompareFlags { settings, builds, ..given.clone() }))
    }
}

/// The keys that have a value: each known and valid, and none that excludes another.
fn checked(keys: Placed) -> Result<Layer, (usize, String)> {
    let flags = flags();
    let mut layer = Layer::new();
    for (key, value) in keys.into_iter().filter(|(_, value)| is_given(value)) {
        let (at, key) = (key.span().start, key.into_inner());
        let known = || flags.get_arguments().filter_map(Arg::get_long).chain([START]);
        if !known().any(|known| known == key) {
            return Err((at, format!("unknown field `{key}`; {}", suggestion(&key, known()))));
        }
        if key == START && texts(&value).iter().any(|start| start.trim().is_empty()) {
            return Err((at, format!("start = {value} is no command")));
        }
        layer.insert(key, value);
        parsed(&flags, &layer).map_err(|reason| (at, reason))?;
    }
    Ok(layer)
}

/// Keys as flags, whose values and conflicts are those of the command line.
fn parsed(flags: &Command, keys: &Layer) -> Result<ArgMatches, String> {
    let flag = |key: &str| flags.get_arguments().find(|flag| flag.get_long() == Some(key));
    let words = keys.iter().filter_map(|(key, value)| Some(words(flag(key)?, value))).flatten();
    let all = std::iter::once("linerate".to_owned()).chain(words);
    flags.clone().try_get_matches_from(all).map_err(|refusal| words_of(&refusal))
}

/// `--name`, `--name=value`, or `--name a b` for each pair.
fn words(flag: &Arg, value: &Value) -> Vec<String> {
    let name = format!("--{}", flag.get_long().unwrap_or_default());
    let texts = texts(value);
    match flag.get_num_args().map_or(1, |range| range.max_values()) {
        _ if *value == Value::Bool(true) => vec![name],
        size @ 2.. => {
            texts.chunks(size).flat_map(|some| std::iter::once(&name).chain(some)).cloned().collect()
        }
        _ => texts.iter().map(|text| format!("{name}={text}")).collect(),
    }
}

/// One text, each of a list, or names and their lists by turns.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().map(text).collect(),
        Value::Object(lists) => lists.iter().flat_map(|(name, list)| [name.clone(), text(list)]).collect(),
        one => vec![text(one)],
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// The first paragraph of a refusal.
fn words_of(refusal: &clap::Error) -> String {
    let text = refusal.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    text.split("\n\n").next().unwrap_or(text).trim().to_owned()
}

/// A margin is that of everything, unless latencies have one of their own at the same place.
fn replaces(flags: &Command, nearer: &str, key: &str) -> bool {
    let named = |name: &str| flags.get_arguments().find(|flag| flag.get_long() == Some(name));
    let excludes = |one: &Arg, other: &Arg| flags.get_arg_conflicts_with(one).contains(&other);
    nearer == key
        || (nearer, key) == ("margin", "margin-us")
        || named(nearer)
            .zip(named(key))
            .is_some_and(|(nearer, key)| excludes(nearer, key) || excludes(key, nearer))
}

/// The settings as flags of a command; one that is not there is not false, but unknown.
fn flags() -> Command {
    let optional = |flag: Arg| match flag.get_action() {
        ArgAction::SetTrue => flag.action(ArgAction::Set).num_args(0).default_missing_value("true"),
        _ => flag,
    };
    let all = Settings::augment_args(Command::new("linerate").disable_help_flag(true));
    let mut all = all.mut_args(optional);
    all.build();
    all
}

fn is_given(value: &Value) -> bool {
    match value {
        Value::Bool(is_given) => *is_given,
        Value::Array(all) => !all.is_empty(),
        Value::Object(all) => !all.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Cli, CompareArgs, GateArgs};
    use clap::Parser;

    fn project(text: &str) -> Result<Project, String> {
        Project::parse(PathBuf::from("/shop"), text).map_err(|e| e.to_string())
    }

    /// The commands and the flags of a command line with a file.
    fn complete(file: &str, words: &[&str]) -> Result<(GivenServers, CompareFlags), String> {
        let words = ["linerate"].iter().chain(words);
        let (cli::Command::Compare(CompareArgs { what, flags, .. })
        | cli::Command::Gate(GateArgs { what, flags, .. })) = Cli::parse_from(words).command
        else {
            panic!("only these have projects")
        };
        project(file)?.complete(what.first().map(String::as_str), &flags).map_err(|e| e.to_string())
    }

    #[test]
    fn a_key_is_a_flag_unless_the_user_has_given_it_or_one_that_excludes_it() {
        let file = "start = './shop'\nurl = '/api'\nhttps = true\nexpect = 'status=404'\nconnections = 4\n\
                    margin = '2%'\nheader = ['A: b', 'C: d']\n";
        let (servers, flags) = complete(file, &["gate", "-c", "8", "--quiet"]).unwrap();
        let Settings { load, judge, .. } = &flags.settings;
        assert_eq!(load.url, ["/api"]);
        assert_eq!((load.connections, load.https), (Some(8), true));
        assert_eq!(judge.margin, Some(0.02));
        assert_eq!((load.request.header.len(), load.expect.unwrap().status), (2, Some(404)));
        assert_eq!([servers.folder, flags.builds.checkout], [Some("/shop".into()), Some("/shop".into())]);
        assert!(flags.run.quiet && servers.keys.contains(&"url = \"/api\"".to_owned()), "{:?}", servers.keys);
        let (servers, flags) = complete(file, &["compare", "--tcp"]).unwrap();
        let load = flags.settings.load;
        assert!(load.tcp && !load.https && load.expect.is_none(), "{load:?}");
        assert!(!servers.keys.iter().any(|key| key.starts_with("https")), "{:?}", servers.keys);
    }

    #[test]
    fn http_2_is_a_key_that_other_protocols_exclude() {
        let file = "start = './shop'\nh2 = true\nstreams = 4\n";
        let load = |words: &[&str]| complete(file, words).unwrap().1.settings.load;
        let http = load(&["gate"]);
        assert_eq!((http.h2, http.streams), (true, Some(4)));
        let echo = load(&["gate", "--ws"]);
        assert_eq!((echo.h2, echo.streams, echo.ws), (false, None, true));
    }

    #[test]
    fn a_margin_replaces_that_of_latencies_in_what_is_further_away() {
        let file = "start = './shop'\nmargin = '2%'\nmargin-us = 20\n\
                    [compare.relative]\nmargin = '5%'\n[compare.absolute]\nmargin-us = 5\n";
        let margins = |words: &[&str]| {
            let judge = complete(file, words).unwrap().1.settings.judge;
            (judge.margin, judge.margin_us)
        };
        assert_eq!(margins(&["gate"]), (Some(0.02), Some(20.0)));
        assert_eq!(margins(&["gate", "--margin", "3%"]), (Some(0.03), None));
        assert_eq!(margins(&["gate", "--margin-us", "7"]), (Some(0.02), Some(7.0)));
        assert_eq!(margins(&["gate", "relative"]), (Some(0.05), None));
        assert_eq!(margins(&["gate", "absolute"]), (Some(0.02), Some(5.0)));
        assert_eq!(margins(&["gate", "absolute", "--margin", "3%"]), (Some(0.03), None));
    }

    #[test]
    fn a_named_comparison_replaces_what_the_file_has_and_has_values_with_hyphens() {
        let file = "start = './shop'\nhttps = true\nbuild = 'make'\nurl = '/api'\n\
                    [compare.echo]\ntcp = true\nstart = './shop {opt}'\nvalues = { opt = ['-1', '-2'] }\n\
                    [compare.threads]\nstart = ['./shop -t 1', './shop -t 4']\n";
        let (servers, flags) = complete(file, &["compare", "echo"]).unwrap();
        let Settings { subjects, load, .. } = flags.settings;
        assert_eq!((servers.lines, load.tcp, load.https), (vec!["./shop {opt}".into()], true, false));
        assert_eq!((subjects.values, subjects.build), (vec!["opt".to_owned(), "-1,-2".into()], None));
        assert_eq!((subjects.setup, flags.builds.checkout), (vec!["make".to_owned()], None));
        let (servers, flags) = complete(file, &["compare", "threads"]).unwrap();
        assert_eq!(servers.lines, ["./shop -t 1", "./shop -t 4"]);
        assert_eq!(flags.settings.load.url, ["/api"]);
    }

    #[test]
    fn what_a_flag_refuses_is_refused_with_the_line_of_the_file() {
        for (keys, part) in [
            ("url = 'api'", ":2: invalid value 'api' for '--url <PATH>': expected a path"),
            ("connections = 0", ":2: invalid value '0' for '--connections <N>'"),
            ("connections = true", ":2: a value is required for '--connections <N>'"),
            ("https = 'yes'", ":2: unexpected value 'yes' for '--https'"),
            ("https = true\ntcp = true", ":3: the argument '--https' cannot be used with '--tcp'"),
            ("strat = './x'", ":2: unknown field `strat`; nearest: \"start\""),
            ("out = 'x'", ":2: unknown field `out`"),
            ("[compare.x]\nurl = 'api'", ":3: invalid value 'api' for '--url <PATH>'"),
            ("[compare.x.compare.y]\nurl = '/'", "unknown field `compare`"),
        ] {
            let error = project(&format!("start = './shop'\n{keys}\n")).unwrap_err();
            assert!(error.starts_with("/shop/linerate.toml:") && error.contains(part), "{error}");
        }
        assert!(project("start = ['./a', ' ']").unwrap_err().contains("is no command"));
    }

    #[test]
    fn a_file_without_a_command_is_refused_with_what_to_add() {
        let error = complete("url = '/'\n[compare.x]\n", &["gate"]).unwrap_err();
        assert!(error.contains("/shop/linerate.toml: ") && error.contains("add start ="), "{error}");
        assert!(error.contains("name one of [\"x\"]"), "{error}");
    }
}
