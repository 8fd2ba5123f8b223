//! Options of `linerate compare` and `gate` for commands that start servers.

use crate::error::Error;
use crate::measurement::{Expectation, PlannedArm, PlannedCommands, PlannedComparison, PlannedRequest};
use crate::subject;
use clap::Args;
use std::fs;
use std::path::Path;

/// What `{port}` and PORT are, unless the user's own PORT or --port is another.
const PORT: u16 = 8080;

/// Commands that start servers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Commands")]
pub struct CommandOptions {
    /// Name of a command, in their order [default: its program, or the whole command]
    #[arg(long = "name", short = 'n', value_name = "NAME")]
    pub names: Vec<String>,

    /// Request target
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = target)]
    pub url: String,

    /// Request method
    #[arg(long, short = 'X', value_name = "METHOD", default_value = "GET")]
    pub method: String,

    /// Additional header, 'Name: value' (repeatable)
    #[arg(long, short = 'H', value_name = "LINE")]
    pub header: Vec<String>,

    /// Request body; @FILE: from a file
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,

    /// A correct response, such as status=404 or status=200,bytes=12 [default: the first command's responses]
    #[arg(long, value_name = "PARTS", value_parser = expectation)]
    pub expect: Option<Expectation>,

    /// Concurrent connections
    #[arg(
        long,
        short,
        value_name = "N",
        default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub connections: u32,

    /// The port to measure, where a server listens on several; also {port} and PORT
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
}

impl CommandOptions {
    /// The comparison with what these options say about commands.
    ///
    /// # Errors
    /// A command that cannot be started, or a body that cannot be read.
    pub fn comparison(
        &self,
        commands: &[String],
        comparison: PlannedComparison,
    ) -> Result<PlannedComparison, Error> {
        let body = match self.body.as_deref().map(|body| (body, body.strip_prefix('@'))) {
            None => String::new(),
            Some((text, None)) => text.to_owned(),
            Some((_, Some(file))) => fs::read_to_string(file).map_err(Error::file(Path::new(file)))?,
        };
        let of_user = || std::env::var("PORT").ok()?.parse().ok().filter(|port| *port > 0);
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // Half of the CPUs for the client: it needs less time for a request than most servers.
        let threads = u32::try_from(cpus / 2).unwrap_or(1).clamp(1, self.connections);
        let planned = PlannedCommands {
            commands: subject::named(commands, &self.names)?,
            folder: std::env::current_dir().map_err(Error::file(Path::new(".")))?,
            port: self.port.or_else(of_user).unwrap_or(PORT),
            port_is_given: self.port.is_some(),
            request: PlannedRequest {
                method: self.method.clone(),
                path: self.url.clone(),
                headers: self.header.clone(),
                body,
            },
            connections: self.connections,
            threads,
            given: self.expect.unwrap_or_default(),
            expect: self.expect.unwrap_or_default(),
            warmup: None,
        };
        subject::lines(&planned)?;
        let arm = |text: String| PlannedArm { arm: text, resolved: None };
        let [base, head @ ..] = &planned.commands[..] else { return Ok(comparison) };
        let heads: Vec<&str> = head.iter().map(|command| command.name.as_str()).collect();
        Ok(PlannedComparison {
            base: arm(base.name.clone()),
            head: arm(heads.join(", ")),
            commands: Some(planned),
            ..comparison
        })
    }
}

fn target(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err("expected a path such as /api/items: the address is found".into())
    }
}

fn expectation(text: &str) -> Result<Expectation, String> {
    let mut expectation = Expectation::default();
    for part in text.split(',') {
        let unknown = || format!("`{part}`: expected status=N or bytes=N");
        let (name, value) = part.split_once('=').ok_or_else(unknown)?;
        match name {
            "status" => {
                let status = value.parse().ok().filter(|status| (100..600).contains(status));
                expectation.status = Some(status.ok_or_else(|| format!("`{part}`: no status of HTTP"))?);
            }
            "bytes" => {
                let bytes = value.parse().map_err(|_| format!("`{part}`: expected a whole number"))?;
                expectation.bytes = Some(bytes);
            }
            _ => return Err(unknown()),
        }
    }
    Ok(expectation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_has_parts_by_name() {
        let expected = Expectation { status: Some(404), bytes: Some(12), crc32: None };
        assert_eq!(expectation("status=404,bytes=12"), Ok(expected));
        for (text, part) in
            [("json", "expected status=N"), ("status=9", "no status"), ("bytes=x", "whole number")]
        {
            assert!(expectation(text).unwrap_err().contains(part), "{text}");
        }
    }
}
