//! A command line into a program and its arguments, as a shell splits words; nothing else of a shell.

use crate::lab::CommandLine;
use crate::lab::program::is_program;
use linerate_contract::nearest::nearest;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// What only a shell understands.
const OF_SHELLS: [char; 8] = ['|', '&', ';', '<', '>', '$', '`', '*'];

/// With `{port}` and `{address}` replaced.
pub fn with_port(word: &str, port: u16) -> String {
    word.replace("{port}", &port.to_string()).replace("{address}", &format!("127.0.0.1:{port}"))
}

/// The program and its arguments, with the port, if it is known already.
///
/// # Errors
/// The command cannot be split, or its program is not there or cannot be executed; with the remedy.
pub fn parse(command: &str, folder: &Path, port: Option<u16>) -> Result<CommandLine, String> {
    let words = shlex::split(command).ok_or_else(|| format!("`{command}`: a quote is not closed"))?;
    let filled = |word: &String| port.map_or_else(|| word.clone(), |port| with_port(word, port));
    let (program, arguments) = words.split_first().ok_or("a command is empty")?;
    let program = located(&filled(program), folder).map_err(|reason| {
        let of_shell = words.iter().any(|word| word.contains(OF_SHELLS));
        let hint =
            if of_shell { format!("; for a shell's syntax: sh -c '{command}'") } else { String::new() };
        format!("{reason}{hint}")
    })?;
    Ok((program, arguments.iter().map(filled).collect()))
}

/// The file name of the program.
pub fn short_name(command: &str) -> String {
    let first = shlex::split(command).and_then(|words| words.into_iter().next());
    let name = first.as_deref().map(Path::new).and_then(Path::file_name);
    name.map_or_else(|| command.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// True for `docker run` and the like: a daemon starts the server, in a network of its own.
pub fn starts_container(command: &str) -> bool {
    let words = shlex::split(command).unwrap_or_default();
    let runs = words.iter().skip(1).any(|word| ["run", "start", "up"].contains(&word.as_str()));
    ["docker", "podman", "nerdctl", "docker-compose"].contains(&&*short_name(command)) && runs
}

/// True if a word could be meant as a command: it has a space or a slash, or is a program.
pub fn is_command(word: &str) -> bool {
    word.contains([' ', '/']) || Path::new(word).exists() || on_path(word).is_some()
}

fn located(program: &str, folder: &Path) -> Result<PathBuf, String> {
    if !program.contains('/') {
        return on_path(program).ok_or_else(|| {
            let here = folder.join(program);
            let near = nearest(program, programs().iter().map(String::as_str)).map(str::to_owned);
            let next = match near {
                _ if is_program(&here) => format!("write ./{program} for the file in this folder"),
                Some(near) => format!("nearest: {near:?}"),
                None => "give its path, such as ./server".into(),
            };
            format!("there is no program `{program}` on PATH; {next}")
        });
    }
    let path = folder.join(program);
    match path.metadata() {
        Err(e) => Err(format!("{}: {e}", path.display())),
        Ok(found) if found.is_dir() => Err(format!("{} is a folder, not a program", path.display())),
        Ok(_) if !is_program(&path) => {
            let path = path.display();
            Err(format!("{path} is not executable: chmod +x {path}, or name its interpreter before it"))
        }
        Ok(_) => Ok(path),
    }
}

fn folders() -> Vec<PathBuf> {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect()
}

fn on_path(program: &str) -> Option<PathBuf> {
    folders().into_iter().map(|folder| folder.join(program)).find(|file| is_program(file))
}

/// The names of all programs, for the nearest one.
fn programs() -> BTreeSet<String> {
    let entries = folders().into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(command: &str) -> Result<(String, Vec<String>), String> {
        let (program, arguments) = parse(command, Path::new("/bin"), Some(8080))?;
        Ok((program.display().to_string(), arguments))
    }

    #[test]
    fn words_are_split_as_in_a_shell_and_have_port_and_address() {
        let (program, arguments) = parsed("./sh -c 'a  b' --port={port} {address}").unwrap();
        assert_eq!(program, "/bin/./sh");
        assert_eq!(arguments, ["-c", "a  b", "--port=8080", "127.0.0.1:8080"]);
        assert!(parsed("sh").unwrap().0.ends_with("/sh"));
    }

    #[test]
    fn a_command_of_a_container_is_known_by_its_words() {
        let are =
            ["docker run -p 80:80 nginx", "/usr/bin/podman run x", "docker compose up", "docker ps", "./run"]
                .map(starts_container);
        assert_eq!(are, [true, true, true, false, false]);
    }

    #[test]
    fn a_program_that_cannot_be_started_is_refused_with_the_next_step() {
        for (command, part) in [
            ("./sh 'a", "a quote is not closed"),
            ("", "a command is empty"),
            ("lss", "there is no program `lss` on PATH; nearest: \"l"),
            ("./no-such-program", "/bin/./no-such-program: No such file"),
            ("/etc/passwd", "/etc/passwd is not executable: chmod +x /etc/passwd"),
            ("/etc", "is a folder"),
            ("A=1&&./sh", "sh -c 'A=1&&./sh'"),
        ] {
            let error = parsed(command).unwrap_err();
            assert!(error.contains(part), "{command}: {error}");
        }
    }

    #[test]
    fn a_word_is_a_command_if_it_has_a_space_or_a_slash_or_is_a_program() {
        assert!(is_command("./x") && is_command("a b") && is_command("sh"));
        assert!(!is_command("no-such-suite"));
    }
}
