//! The keys of `linerate.toml` as words of the command line, whose options have the rules
//! (docs/decisions/comparisons.md).

use super::{BuildOptions, Cli, Command, CommandOptions};
use crate::error::Error;
use crate::project::{Project, Settings};
use clap::parser::ValueSource;
use clap::{Arg, CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// The options of a command line, with the settings of a project where it has none, and nothing that excludes
/// them.
///
/// # Errors
/// A setting that its option refuses.
pub fn with_settings(
    mut words: Vec<OsString>,
    project: &Project,
    name: Option<&str>,
    settings: &Settings,
) -> Result<(CommandOptions, BuildOptions), Error> {
    let mut cli = Cli::command();
    cli.build();
    let refused = |refusal: clap::Error| {
        let text = refusal.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        project.error(text.split("\n\n").next().unwrap_or(text).trim())
    };
    let matches = cli.try_get_matches_from_mut(&words).map_err(refused)?;
    let (subcommand, matches) = matches.subcommand().expect("a project is of a subcommand");
    let command = cli.find_subcommand(subcommand).expect("it was parsed");
    let is_given = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let mut given: Vec<&Arg> = command.get_arguments().filter(is_given).collect();
    // Behind these there are no options.
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    for layer in project.options(name, settings) {
        let known = layer.into_iter().filter_map(|(name, values)| {
            let arg = command.get_arguments().find(|arg| arg.get_long() == Some(&name))?;
            let excludes = |one: &Arg, other: &Arg| command.get_arg_conflicts_with(one).contains(&other);
            let is_replaced = |given: &&Arg| {
                *given == arg || excludes(given, arg) || excludes(arg, given) || replaces(given, arg)
            };
            (!given.iter().any(is_replaced)).then_some((arg, values))
        });
        let added: Vec<(&Arg, Vec<String>)> = known.collect();
        given.extend(added.iter().map(|(arg, _)| *arg));
        words.splice(end..end, added.iter().flat_map(|(arg, values)| of_option(arg, values)));
    }
    let matches = Cli::command().try_get_matches_from(&words).map_err(refused)?;
    match Cli::from_arg_matches(&matches).map_err(refused)?.command {
        Command::Compare(super::CompareArgs { commands, builds, .. })
        | Command::Gate(super::GateArgs { commands, builds, .. }) => {
            Ok((CommandOptions { folder: Some(project.folder.clone()), ..commands }, builds))
        }
        _ => unreachable!("only these have projects"),
    }
}

/// A margin is that of everything, unless latencies have one of their own at the same place.
fn replaces(given: &Arg, other: &Arg) -> bool {
    [given, other].map(Arg::get_long) == ["margin", "margin-us"].map(Some)
}

/// `--name`, `--name=value`, or `--name a b` for each pair.
fn of_option(arg: &Arg, values: &[String]) -> Vec<OsString> {
    let name = format!("--{}", arg.get_long().unwrap_or_default());
    let size = arg.get_num_args().map_or(1, |range| range.max_values());
    match size {
        0 => vec![name.into()],
        1 => values.iter().map(|value| format!("{name}={value}").into()).collect(),
        _ => values
            .chunks(size)
            .flat_map(|some| std::iter::once(&name).chain(some))
            .map(OsString::from)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn options(file: &str, words: &[&str]) -> Result<(CommandOptions, BuildOptions), String> {
        let project = Project { folder: PathBuf::from("/shop"), settings: toml::from_str(file).unwrap() };
        let name = words.get(1).copied().filter(|word| !word.starts_with('-'));
        let settings = project.comparison(name).unwrap();
        let words = ["linerate"].iter().chain(words).map(OsString::from).collect();
        with_settings(words, &project, name, &settings).map_err(|e| e.to_string())
    }

    #[test]
    fn a_key_is_an_option_unless_the_user_has_given_it_or_one_that_excludes_it() {
        let file = "start = './shop'\nurl = '/api'\nhttps = true\nexpect = 'status=404'\nconnections = 4\n\
                    margin = '2%'\nheader = ['A: b', 'C: d']\n";
        let (commands, builds) = options(file, &["gate", "-c", "8", "--quiet"]).unwrap();
        assert_eq!(
            (commands.url.as_deref(), commands.connections, commands.https),
            (Some("/api"), Some(8), true)
        );
        assert_eq!((builds.margin, builds.build.as_deref(), builds.quiet), (Some(0.02), Some("true"), true));
        assert_eq!((commands.request.header.len(), commands.expect.unwrap().status), (2, Some(404)));
        assert_eq!([commands.folder, builds.checkout], [Some("/shop".into()), Some("/shop".into())]);
        let (commands, _) = options(file, &["compare", "--tcp"]).unwrap();
        assert!(commands.tcp && !commands.https && commands.expect.is_none(), "{commands:?}");
    }

    #[test]
    fn http_2_is_a_key_that_other_protocols_exclude() {
        let file = "start = './shop'\nh2 = true\nstreams = 4\n";
        let (commands, _) = options(file, &["gate"]).unwrap();
        assert_eq!((commands.h2, commands.streams), (true, Some(4)));
        let (commands, _) = options(file, &["gate", "--ws"]).unwrap();
        assert_eq!((commands.h2, commands.streams, commands.ws), (false, None, true));
    }

    #[test]
    fn a_margin_replaces_that_of_latencies_in_what_is_further_away() {
        let file = "start = './shop'\nmargin = '2%'\nmargin-us = 20\n\
                    [compare.relative]\nmargin = '5%'\n[compare.absolute]\nmargin-us = 5\n";
        let margins = |words: &[&str]| {
            let (_, builds) = options(file, words).unwrap();
            (builds.margin, builds.margin_us)
        };
        assert_eq!(margins(&["gate"]), (Some(0.02), Some(20.0)));
        assert_eq!(margins(&["gate", "--margin", "3%"]), (Some(0.03), None));
        assert_eq!(margins(&["gate", "--margin-us", "7"]), (Some(0.02), Some(7.0)));
        assert_eq!(margins(&["gate", "relative"]), (Some(0.05), None));
        assert_eq!(margins(&["gate", "absolute"]), (Some(0.02), Some(5.0)));
        assert_eq!(margins(&["gate", "absolute", "--margin", "3%"]), (Some(0.03), None));
    }

    #[test]
    fn a_named_comparison_excludes_what_the_file_has_and_has_values_with_hyphens() {
        let file = "start = './shop'\nhttps = true\nbuild = 'make'\n\
                    [compare.echo]\ntcp = true\nstart = './shop {opt}'\nvalues = { opt = ['-1', '-2'] }\n";
        let (commands, builds) = options(file, &["compare", "echo"]).unwrap();
        assert_eq!(
            (commands.tcp, commands.https, &commands.lists[..]),
            (true, false, &["opt".into(), "-1,-2".into()][..])
        );
        assert_eq!((commands.setup, builds.build), (vec!["make".to_owned()], None));
    }

    #[test]
    fn what_an_option_refuses_is_refused_with_the_file() {
        for (keys, part) in [
            ("url = 'api'", "expected a path"),
            ("connections = 0", "--connections"),
            ("https = true\ntcp = true", "cannot be used with"),
        ] {
            let error = options(&format!("start = './shop'\n{keys}\n"), &["compare"]).unwrap_err();
            assert!(error.starts_with("/shop/linerate.toml: ") && error.contains(part), "{error}");
        }
    }
}
