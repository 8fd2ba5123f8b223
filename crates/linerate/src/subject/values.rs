//! `-L NAME A,B,C`: a command for each value. `--setup` and `--cleanup` of each command.

use crate::error::Error;

/// A command with values in place of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    pub command: String,
    /// Such as `threads=1`; empty without values.
    pub name: String,
    pub setup: Option<String>,
    pub cleanup: Option<String>,
}

/// Each command with each combination of values. `lists` are names and values by turns; `setups` and
/// `cleanups` have one text for all commands, or one for each.
///
/// # Errors
/// A list that no text uses, a list without values, or a wrong number of setups or cleanups.
pub fn filled(
    commands: &[String],
    lists: &[String],
    setups: &[String],
    cleanups: &[String],
) -> Result<Vec<Filled>, Error> {
    let (setups, cleanups) = (of_each("setup", setups, commands)?, of_each("cleanup", cleanups, commands)?);
    let each = commands.iter().zip(setups).zip(cleanups);
    let mut all: Vec<Filled> = each
        .map(|((command, setup), cleanup)| Filled {
            command: command.clone(),
            name: String::new(),
            setup,
            cleanup,
        })
        .collect();
    for list in lists.chunks(2) {
        let [name, values] = list else { continue };
        let place = format!("{{{name}}}");
        let has = |one: &Filled| {
            let texts = [Some(&one.command), one.setup.as_ref(), one.cleanup.as_ref()];
            texts.into_iter().flatten().any(|text| text.contains(&place))
        };
        if !all.iter().any(has) {
            return Err(Error::Input(format!("-L {name}: no command contains {place}")));
        }
        if values.split(',').any(|value| value.trim().is_empty()) {
            return Err(Error::Input(format!("-L {name} {values}: expected values, such as 1,2,4")));
        }
        let with = |one: &Filled, value: &str| {
            let fill = |text: &String| text.replace(&place, value);
            let own = format!("{name}={value}");
            Filled {
                command: fill(&one.command),
                name: if one.name.is_empty() { own } else { format!("{}, {own}", one.name) },
                setup: one.setup.as_ref().map(fill),
                cleanup: one.cleanup.as_ref().map(fill),
            }
        };
        let each = |one: &Filled| values.split(',').map(|value| with(one, value.trim())).collect::<Vec<_>>();
        all = all.iter().flat_map(each).collect();
    }
    Ok(all)
}

fn of_each(option: &str, texts: &[String], commands: &[String]) -> Result<Vec<Option<String>>, Error> {
    match texts {
        [] => Ok(vec![None; commands.len()]),
        [one] => Ok(vec![Some(one.clone()); commands.len()]),
        several if several.len() == commands.len() => Ok(several.iter().cloned().map(Some).collect()),
        several => Err(Error::Input(format!(
            "--{option} is there {} times for {} commands: give one for all, or one for each in their order",
            several.len(),
            commands.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled_in(commands: &[&str], lists: &[&str], setups: &[&str]) -> Result<Vec<Filled>, String> {
        let [commands, lists, setups] =
            [commands, lists, setups].map(|all| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        filled(&commands, &lists, &setups, &[]).map_err(|e| e.to_string())
    }

    #[test]
    fn there_is_a_command_for_each_combination_of_values() {
        let all = filled_in(&["./a -t {t} -m {m}"], &["t", "1,2", "m", "x,y"], &["make {m}"]).unwrap();
        let texts: Vec<_> = all.iter().map(|one| (one.command.as_str(), one.name.as_str())).collect();
        assert_eq!(texts[0], ("./a -t 1 -m x", "t=1, m=x"));
        assert_eq!(texts[3], ("./a -t 2 -m y", "t=2, m=y"));
        assert_eq!((all.len(), all[1].setup.as_deref()), (4, Some("make y")));
    }

    #[test]
    fn lists_and_setups_that_fit_no_command_are_refused() {
        assert!(filled_in(&["./a"], &["t", "1,2"], &[]).unwrap_err().contains("no command contains {t}"));
        assert!(filled_in(&["./a {t}"], &["t", "1,,2"], &[]).unwrap_err().contains("expected values"));
        assert!(
            filled_in(&["./a", "./b"], &[], &["x", "y", "z"]).unwrap_err().contains("3 times for 2 commands")
        );
    }
}
