//! The command line of a run: its flags, and itself as text.

use super::Cli;
use crate::lab::program::quoted;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Id};
use std::ffi::OsString;

/// The heading of flags that say where results go: they are no part of what is measured.
pub(super) const OUTPUT: &str = "Output";

/// The ids of the flags that are on the command line.
#[derive(Debug, Clone)]
pub struct Given(pub(super) Vec<String>);

impl Given {
    /// The long names of the flags.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|id| id.replace('_', "-"))
    }

    /// True if a flag of this group is given.
    pub(super) fn has<T: Args>(&self) -> bool {
        let group = T::augment_args(clap::Command::new("linerate"));
        group.get_arguments().any(|flag| self.0.iter().any(|id| flag.get_id() == id.as_str()))
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_given = |id: &&Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Ok(Self(matches.ids().filter(is_given).map(Id::to_string).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Given {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command
    }
}

/// The command that makes this run again, with the seed that was drawn, and as a comment the keys that
/// linerate.toml had.
pub(super) fn again(drawn: Option<u64>, keys: &[String]) -> String {
    text(std::env::args_os().skip(1), drawn, keys)
}

fn text(words: impl Iterator<Item = OsString>, drawn: Option<u64>, keys: &[String]) -> String {
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    let mut all = vec!["linerate".to_owned()];
    let mut end = None;
    while let Some(word) = words.next() {
        if word == "--" {
            end.get_or_insert(all.len());
        }
        match values_of_output(&word).filter(|_| end.is_none()) {
            Some(values) => words.by_ref().take(values).for_each(drop),
            None => all.push(shell_word(&word)),
        }
    }
    let end = end.unwrap_or(all.len());
    all.splice(end..end, drawn.map(|seed| format!("--seed {seed}")));
    let keys = (!keys.is_empty()).then(|| format!("# linerate.toml: {}", keys.join(", ")));
    all.into_iter().chain(keys).collect::<Vec<_>>().join(" ")
}

/// The words behind a flag of output; `None` for other words.
fn values_of_output(word: &str) -> Option<usize> {
    let (name, has_value) = word.split_once('=').map_or((word, false), |(name, _)| (name, true));
    let mut cli = Cli::command();
    cli.build();
    let flags = cli.get_subcommands().chain([&cli]).flat_map(clap::Command::get_arguments);
    let found = flags.filter(|flag| flag.get_help_heading() == Some(OUTPUT)).find(|flag| {
        let is_long = || flag.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long));
        is_long() || flag.get_short().is_some_and(|short| name == format!("-{short}"))
    })?;
    Some(usize::from(found.get_action().takes_values() && !has_value))
}

/// Quoted where a shell would take it for more than a word.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { quoted(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(words: &[&str], drawn: Option<u64>, keys: &[&str]) -> String {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        text(words.iter().map(OsString::from), drawn, &keys)
    }

    #[test]
    fn a_run_is_made_again_by_its_own_words_and_the_seed_that_was_drawn() {
        let words = ["compare", "./a", "python3 'b'.py", "--url", "/x?y", "-c", "8"];
        let text = again(&words, Some(7), &[]);
        assert_eq!(text, r"linerate compare ./a 'python3 '\''b'\''.py' --url '/x?y' -c 8 --seed 7");
        assert_eq!(again(&["run", "mini", "--seed", "7"], None, &[]), "linerate run mini --seed 7");
        let behind = again(&["compare", "--", "-a", "--quiet"], Some(7), &[]);
        assert_eq!(behind, "linerate compare --seed 7 -- -a --quiet");
    }

    #[test]
    fn where_results_go_is_no_part_of_it() {
        let words = ["gate", "--out", "a b", "mini", "-q", "--comment=x", "--history", "h", "--resume", "d"];
        assert_eq!(again(&words, Some(7), &[]), "linerate gate mini --seed 7");
    }

    #[test]
    fn keys_of_a_file_are_a_comment() {
        let text = again(&["gate"], Some(7), &["start = \"./a\"", "url = \"/\""]);
        assert_eq!(text, "linerate gate --seed 7 # linerate.toml: start = \"./a\", url = \"/\"");
    }
}
