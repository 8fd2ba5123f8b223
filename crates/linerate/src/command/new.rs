//! `linerate new`: a skeleton that builds and passes the contract test, from `sdk/templates`.

use super::print;
use crate::cli::{New, NewArgs, NewSystemArgs};
use crate::error::Error;
use crate::home;
use crate::system::sorted_entries;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// The placeholder for the system's name in templates.
const NAME: &str = "NAME";

/// Creates the skeleton.
///
/// # Errors
/// The name is invalid or taken; the folder cannot be written.
pub fn new(args: &NewArgs) -> Result<ExitCode, Error> {
    match &args.what {
        New::System(args) => system(args),
    }
}

/// Creates `systems/<name>`.
fn system(args: &NewSystemArgs) -> Result<ExitCode, Error> {
    let home = home::find()?;
    check_name(&args.name)?;
    let folder = home.join("systems").join(&args.name);
    if folder.exists() {
        let folder = folder.display();
        return Err(Error::Input(format!("{folder} exists: choose another name")));
    }
    copy(&home.join("sdk/templates").join(&args.lang), &folder, &args.name)?;
    print(&format!(
        "{folder} implements `rr` with blocking sockets; replace them with your library. Then:\n\
         linerate systems --install {name}          # builds it, or prints the compiler's errors\n\
         cargo test -p linerate --test contract     # checks sdk/CONTRACT.md\n\
         and add the variant to the lists of suites/runtime.toml\n",
        folder = folder.display(),
        name = args.name
    ))
}

/// The name is used for a folder, a program, a package and in cell ids.
fn check_name(name: &str) -> Result<(), Error> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(good) && !name.ends_with('-') {
        return Ok(());
    }
    Err(Error::Input(format!(
        "`{name}` is not a valid name: a letter, then letters, digits and `-`, all lower case"
    )))
}

fn copy(from: &Path, to: &Path, name: &str) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(Error::file(to))?;
    for entry in sorted_entries(from)? {
        let target = to.join(entry.file_name().unwrap_or_default());
        if entry.is_dir() {
            copy(&entry, &target, name)?;
        } else {
            let text = fs::read_to_string(&entry).map_err(Error::file(&entry))?;
            fs::write(&target, text.replace(NAME, name)).map_err(Error::file(&target))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_letters_digits_and_hyphens() {
        for name in ["asio", "asio-coro", "h2o2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "Asio", "2fast", "-x", "x-", "a/b", "a b", "ä"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
