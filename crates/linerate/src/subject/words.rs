//! A command line into a program and its arguments, as a shell splits words. Where it has more of a shell's
//! syntax, a shell runs it, as in hyperfine.

use crate::image::{self, Image};
use crate::lab::CommandLine;
use crate::lab::program::is_program;
use linerate_contract::nearest::nearest;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Outside of quotes, what only a shell understands; in double quotes the last two.
const OF_SHELLS: [char; 12] = ['|', '&', ';', '<', '>', '(', ')', '*', '?', '\n', '$', '`'];
const IN_QUOTES: [char; 2] = ['$', '`'];
const SHELL: &str = "/bin/sh";
/// The program that sets variables, and replaces itself by another one.
const ENV: &str = "env";

/// With `{port}` and `{address}` replaced.
pub fn with_port(word: &str, port: u16) -> String {
    word.replace("{port}", &port.to_string()).replace("{address}", &format!("127.0.0.1:{port}"))
}

/// The words of a command that starts a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) process: CommandLine,
    /// Set for an image; else the program is the user's.
    pub(crate) image: Option<Image>,
}

/// As [`parse`], also of an image.
///
/// # Errors
/// As of [`parse`]; or the image is not there.
pub(crate) fn line(command: &str, folder: &Path, port: Option<u16>) -> Result<Line, String> {
    if !image::is_image(command) {
        return Ok(Line { process: parse(command, folder, port)?, image: None });
    }
    let words = shlex::split(command).ok_or_else(|| format!("`{command}`: a quote is not closed"))?;
    let words: Vec<String> =
        words.iter().map(|word| port.map_or_else(|| word.clone(), |port| with_port(word, port))).collect();
    let image = image::open(&words, folder)?;
    Ok(Line { process: (image.program.clone(), image.arguments.clone()), image: Some(image) })
}

/// The program and its arguments, with the port, if it is known already. A shell replaces itself by the last
/// program that it starts, so that signals and memory are the server's.
///
/// # Errors
/// The command cannot be split, or its program is not there or cannot be executed; with the remedy.
pub fn parse(command: &str, folder: &Path, port: Option<u16>) -> Result<CommandLine, String> {
    let words = shlex::split(command).ok_or_else(|| format!("`{command}`: a quote is not closed"))?;
    let filled = |word: &String| port.map_or_else(|| word.clone(), |port| with_port(word, port));
    let (program, arguments) = words.split_first().ok_or("a command is empty")?;
    if starts_container(command) {
        return Err(of_engine(program, arguments));
    }
    let assigned = words.iter().take_while(|word| is_assignment(word)).count();
    if !needs_shell(command) && assigned > 0 {
        // Some shells stay beside a program with variables of its own, and their memory is not the server's.
        let program = words.get(assigned).ok_or_else(|| format!("`{command}`: there is no program in it"))?;
        if !words[..assigned].iter().any(|word| word.starts_with("PATH=")) {
            located(&filled(program), folder)?;
        }
        return Ok((located(ENV, folder)?, words.iter().map(filled).collect()));
    }
    if needs_shell(command) {
        // A program by its path can be missed before anything is started.
        if let Some(path) = words.iter().find(|word| !is_assignment(word)).filter(|word| is_plain_path(word))
        {
            located(path, folder)?;
        }
        return Ok((SHELL.into(), vec!["-c".into(), filled(&command.to_owned())]));
    }
    Ok((located(&filled(program), folder)?, arguments.iter().map(filled).collect()))
}

/// A server in a container has a network, CPUs and files that linerate does not know; its image can be run.
fn of_engine(engine: &str, arguments: &[String]) -> String {
    let values = ["-p", "-v", "-e", "--name", "--network", "--cpus", "-m", "--memory", "-w", "-u", "--user"];
    let mut words = arguments.iter().skip_while(|word| *word != "run").skip(1);
    let image = loop {
        match words.next() {
            Some(word) if values.contains(&&**word) => drop(words.next()),
            Some(word) if word.starts_with('-') => {}
            other => break other.map_or("NAME:TAG", |word| word),
        }
    };
    format!(
        "a container of {engine} runs beside linerate: its CPU time, memory and port are not known. For the \
         server in an image: image:{image}"
    )
}

/// True if a command has syntax beyond words and quotes.
fn needs_shell(command: &str) -> bool {
    let (mut quote, mut is_escaped, mut before) = (None, false, ' ');
    for c in command.chars() {
        let is_special = match quote {
            _ if is_escaped => false,
            None => OF_SHELLS.contains(&c) || before.is_whitespace() && ['~', '#'].contains(&c),
            Some('"') => IN_QUOTES.contains(&c),
            Some(_) => false,
        };
        if is_special {
            return true;
        }
        match quote {
            _ if is_escaped => is_escaped = false,
            Some('\'') if c == '\\' => {}
            _ if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
        before = c;
    }
    false
}

/// Such as `A=1`, before a program.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| is_part(c) && !c.is_ascii_digit()) && name.chars().all(is_part)
}

/// The path of a program in which a shell replaces nothing.
fn is_plain_path(word: &str) -> bool {
    word.contains('/') && !word.contains(OF_SHELLS) && !word.contains(['~', '{'])
}

/// The file name of the program, or what a shell runs.
pub fn short_name(command: &str) -> String {
    if command.contains(['|', '&', ';', '(']) && needs_shell(command) {
        return command.to_owned();
    }
    let words = shlex::split(command).unwrap_or_default();
    let first = words.iter().find(|word| !is_assignment(word));
    let name = first.map(Path::new).and_then(Path::file_name);
    name.map_or_else(|| command.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// True for `docker run` and the like: a daemon starts the server, in a network of its own.
fn starts_container(command: &str) -> bool {
    let words = shlex::split(command).unwrap_or_default();
    let runs = words.iter().skip(1).any(|word| ["run", "start", "up"].contains(&word.as_str()));
    ["docker", "podman", "nerdctl", "docker-compose"].contains(&&*short_name(command)) && runs
}

/// True if a word could be meant as a command: it has a space or a slash, or is a program.
pub fn is_command(word: &str) -> bool {
    word.contains([' ', '/']) || image::is_image(word) || Path::new(word).exists() || on_path(word).is_some()
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
            ("A=1 ./no-such-program", "/bin/./no-such-program: No such file"),
            ("docker run --rm -p 80:80 -e A=1 shop:1 --fast", "image:shop:1"),
            ("podman compose up", "image:NAME:TAG"),
        ] {
            let error = parsed(command).unwrap_err();
            assert!(error.contains(part), "{command}: {error}");
        }
    }

    #[test]
    fn a_shell_runs_what_has_a_shells_syntax() {
        for command in [
            "A=$PORT ./sh",
            "cd /tmp && ./y",
            "./sh -p $PORT",
            "./sh \"$PORT\"",
            "./sh > /dev/null",
            "~/server",
            "(sleep 1)",
            "./sh a\\ b $x",
        ] {
            let text = command.replace("./y", "./sh");
            let (program, arguments) = parsed(&text).unwrap();
            assert_eq!((&*program, &*arguments), (SHELL, &["-c".to_owned(), text][..]), "{command}");
        }
        for command in ["./sh '$PORT'", "./sh \\$x", "./sh a=b", "./sh 'a & b; c'", "./sh x#y \"a'b\""] {
            assert!(parsed(command).unwrap().0.ends_with("/sh") && !needs_shell(command), "{command}");
        }
        assert_eq!(parsed("P={port} ./sh $x").unwrap().1[1], "P=8080 ./sh $x");
    }

    #[test]
    fn variables_alone_need_no_shell_that_stays() {
        let (program, words) = parsed("A='x y' P={port} ./sh -p 1").unwrap();
        assert!(program.ends_with("/env"), "{program}");
        assert_eq!(words, ["A=x y", "P=8080", "./sh", "-p", "1"]);
        assert_eq!(parsed("PATH=/own server").unwrap().1, ["PATH=/own", "server"]);
        assert!(parsed("A=1").unwrap_err().contains("there is no program in it"));
    }

    #[test]
    fn a_name_is_that_of_the_program() {
        assert_eq!(short_name("A=1 B='x y' ./shop -p 1"), "shop");
        assert_eq!(short_name("cd v1 && ./shop"), "cd v1 && ./shop");
    }

    #[test]
    fn a_word_is_a_command_if_it_has_a_space_or_a_slash_or_is_a_program() {
        assert!(is_command("./x") && is_command("a b") && is_command("sh") && is_command("image:shop:1"));
        assert!(!is_command("no-such-suite"));
    }
}
