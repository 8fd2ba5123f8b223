//! An arm of a comparison: which build of a system it is, as settings on the command line.
//!
//! `program=PATH`, `git=REV`, `env:NAME=VALUE`, `set:KEY=VALUE`, joined by commas; `default` is the system as
//! it is. A comma separates where a word with `=` or `:` follows, so that `-Wl,-z,now` is one value.

use linerate_contract::nearest::suggestion;

pub use crate::measurement::{BASE, HEAD};

/// An arm without settings.
pub const AS_IT_IS: &str = "default";
/// How each setting begins.
const SETTINGS: [&str; 5] = ["program=", "git=", "env:", "set:", "plant="];

/// Settings of one side of a comparison, each name once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Arm {
    /// A program in place of the system's own.
    pub program: Option<String>,
    /// A revision of `--checkout`.
    pub git: Option<String>,
    /// The environment of the system's `[build]`.
    pub env: Vec<(String, String)>,
    /// Values of its config templates and arguments, and parameters.
    pub set: Vec<(String, String)>,
    /// Iterations of a loop after each receive (`systems/planted`): a slowdown to calibrate with.
    pub plant: Option<u32>,
}

impl Arm {
    /// # Errors
    /// The text is no setting; the message has the place and the nearest setting.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut arm = Self::default();
        if text == AS_IT_IS {
            return Ok(arm);
        }
        for part in parts(text) {
            let kind = part.find([':', '=']).map_or(part, |end| &part[..=end]);
            let value = &part[kind.len()..];
            if SETTINGS.contains(&kind) && value.is_empty() {
                return Err(format!("`{part}` has no value"));
            }
            let is_new = match kind {
                "program=" => arm.program.replace(value.to_owned()).is_none(),
                "git=" => arm.git.replace(value.to_owned()).is_none(),
                "env:" => insert(&mut arm.env, part, value)?,
                "set:" => insert(&mut arm.set, part, value)?,
                "plant=" => {
                    let count = value.parse();
                    let count = count.map_err(|_| format!("`{part}`: expected a number of iterations"))?;
                    arm.plant.replace(count).is_none()
                }
                _ => {
                    let known = SETTINGS.into_iter().chain([AS_IT_IS]);
                    return Err(format!("`{part}` is not a setting; {}", suggestion(kind, known)));
                }
            };
            if !is_new {
                return Err(format!("`{part}`: this setting is there twice"));
            }
        }
        if arm.program.is_some() && arm.git.is_some() {
            return Err("program= and git= exclude each other: --program is the program of a revision".into());
        }
        Ok(arm)
    }

    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The settings of a text: each begins with a word that ends in `=` or `:`.
fn parts(text: &str) -> Vec<&str> {
    let begins = |rest: &str| {
        let word = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(0);
        word > 0 && rest[word..].starts_with([':', '='])
    };
    let mut starts = vec![0];
    starts.extend(text.match_indices(',').map(|(at, _)| at + 1).filter(|at| begins(&text[*at..])));
    let ends = starts[1..].iter().map(|start| start - 1).chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect()
}

/// Adds `NAME=VALUE`; false if the name is there already.
fn insert(pairs: &mut Vec<(String, String)>, part: &str, pair: &str) -> Result<bool, String> {
    let (name, value) = pair
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("`{part}`: expected NAME=VALUE after the colon"))?;
    let is_new = pairs.iter().all(|(known, _)| known != name);
    pairs.push((name.to_owned(), value.to_owned()));
    Ok(is_new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_setting_is_read_and_commas_inside_values_are_kept() {
        let text = "program=/opt/haproxy,env:LDFLAGS=-Wl,-z,now,env:CXX=g++,set:connections=10,set:log=a,1";
        let arm = Arm::parse(text).unwrap();
        assert_eq!(arm.program.as_deref(), Some("/opt/haproxy"));
        assert_eq!(arm.env, pairs(&[("LDFLAGS", "-Wl,-z,now"), ("CXX", "g++")]));
        assert_eq!(arm.set[0], ("connections".to_owned(), "10".to_owned()));
        assert_eq!(Arm::parse("git=v0.1,plant=300").unwrap().plant, Some(300));
        assert!(Arm::parse("default").unwrap().is_default());
    }

    #[test]
    fn a_wrong_arm_names_the_place_and_the_nearest_setting() {
        for (text, part) in [
            ("progam=/bin/x", "nearest: \"program=\""),
            ("set:a=1,gti=v1", "`gti=v1` is not a setting; nearest: \"git=\""),
            ("git=", "`git=` has no value"),
            ("env:CXX", "`env:CXX`: expected NAME=VALUE"),
            ("set:a=1,set:a=2", "`set:a=2`: this setting is there twice"),
            ("git=a,program=b", "exclude each other"),
            ("plant=much", "expected a number"),
            ("", "is not a setting; known:"),
        ] {
            let error = Arm::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
