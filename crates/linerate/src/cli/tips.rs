//! Advice in place of an option that a command does not have: words of other tools have another name or no
//! need here.

use super::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};
use linerate_contract::nearest::nearest;

/// A comparison, or both of them and `load`.
const COMPARISONS: &[&str] = &["compare", "gate"];
const LOADS: &[&str] = &["load"];

/// Options of other tools, the commands that lack them, and what to do.
const TIPS: &[(&[&str], &[&str], &str)] = &[
    (
        &["--warmup", "-w"],
        COMPARISONS,
        "leave it out: both servers are loaded until their rates and CPU times are steady, before each pair",
    ),
    (
        &["--runs", "--min-runs", "--max-runs", "--repeat", "--rounds", "--count", "-r", "-m"],
        COMPARISONS,
        "leave it out: pairs of runs are made until all is decided, for at most --budget TIME",
    ),
    (
        &["--cacert", "--authority", "--cert", "--key"],
        COMPARISONS,
        "leave it out: certificates are not verified here; `linerate load` verifies them",
    ),
    (
        &["--latency", "--percentiles", "--histogram"],
        COMPARISONS,
        "leave it out: p50 at half of the capacity is shown; --rate compares latencies alone",
    ),
    (&["--bitrate", "-b"], COMPARISONS, "--rate has requests per second: --rate 5000, or --rate 50%"),
    (
        &["--threads", "-t"],
        COMPARISONS,
        "leave it out: the client has a thread for each two CPUs; -c has its connections",
    ),
    (&["--format", "--style"], COMPARISONS, "--json FILE, --export-markdown FILE, and - for standard output"),
    (&["--pid", "--port"], LOADS, "the URL has the port: linerate load http://127.0.0.1:8080/"),
    (&["--url"], LOADS, "give the URL without an option: linerate load http://127.0.0.1:8080/"),
];

/// The refusal of a command line, with a tip that is right or none.
pub fn with_tip(mut refusal: Error, words: &[String]) -> Error {
    let Some(ContextValue::String(option)) = refusal.get(ContextKind::InvalidArg) else { return refusal };
    if refusal.kind() != ErrorKind::UnknownArgument {
        return refusal;
    }
    let option = option.split('=').next().unwrap_or_default().to_owned();
    let mut cli = Cli::command();
    cli.build();
    let Some(command) = words.iter().find_map(|word| cli.find_subcommand(word)) else { return refusal };
    let name = command.get_name();
    let known = TIPS.iter().find(|(options, of, _)| options.contains(&&*option) && of.contains(&name));
    let tip = known.map(|(_, _, tip)| (*tip).to_owned()).or_else(|| {
        let options = command.get_arguments().filter(|one| !one.is_hide_set());
        let long: Vec<String> = options.filter_map(|one| Some(format!("--{}", one.get_long()?))).collect();
        let near = nearest(&option, long.iter().map(String::as_str)).filter(|_| option.starts_with("--"));
        near.map(|near| format!("the nearest option is {near}"))
    });
    for kind in [ContextKind::SuggestedArg, ContextKind::Suggested] {
        refusal.remove(kind);
    }
    let tip = tip.unwrap_or_else(|| format!("`linerate {name} --help` has all options"));
    refusal.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    let usage = command.clone().render_usage();
    refusal.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn refused(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let refusal = Cli::try_parse_from(std::iter::once("linerate".to_owned()).chain(words.clone()));
        with_tip(refusal.map(|_| ()).unwrap_err(), &words).to_string()
    }

    #[test]
    fn an_option_of_another_tool_has_a_tip_that_is_right() {
        for (line, tip) in [
            ("compare a b --warmup 3", "tip: leave it out: both servers are loaded until"),
            ("gate a b --runs 5", "tip: leave it out: pairs of runs are made until all is decided"),
            ("compare a b --cacert x", "tip: leave it out: certificates are not verified here"),
            ("compare a b -b 1G", "tip: --rate has requests per second"),
            ("compare a b --threads=3", "tip: leave it out: the client has a thread"),
            ("compare a b --margn 1%", "tip: the nearest option is --margin"),
            ("compare a b --zzz", "tip: `linerate compare --help` has all options"),
            ("load --url http://a/", "tip: give the URL without an option"),
        ] {
            let text = refused(line);
            assert!(text.contains(tip) && text.contains("Usage: linerate"), "{line}: {text}");
            assert!(!text.contains("similar"), "{line}: {text}");
        }
    }

    #[test]
    fn an_option_of_another_tool_that_means_the_same_is_taken() {
        for line in [
            "compare a b -d 5s --concurrency 8 --rps 100 -k",
            "compare a b --duration 5s --export-json f --export-markdown g",
            "gate a b --time 5s --insecure --qps 100",
            "load http://a/ --qps 5 --concurrency 4 --duration 1s --warmup 1s",
            "load udp://a:1 -b 1G",
            "load https://a/ --cacert c.pem -k=false",
        ] {
            let refusal = Cli::try_parse_from(["linerate"].into_iter().chain(line.split(' '))).err();
            let refusal = refusal.filter(|_| !line.ends_with("-k=false"));
            assert!(refusal.is_none(), "{line}: {}", refusal.unwrap());
        }
    }

    #[test]
    fn every_command_of_the_table_exists_and_lacks_the_options() {
        let cli = Cli::command();
        for (options, commands, _) in TIPS {
            for command in *commands {
                let command = cli.find_subcommand(command).unwrap();
                let longs: Vec<String> = command
                    .get_arguments()
                    .flat_map(|one| one.get_long_and_visible_aliases().unwrap_or_default())
                    .map(|long| format!("--{long}"))
                    .collect();
                let known = options.iter().find(|option| longs.iter().any(|long| long == *option));
                assert_eq!(known, None, "{}", command.get_name());
            }
        }
    }
}
