//! Things that a program may need and the lab does not have: the program would do something else there, and
//! not say so.

use super::exposed::Grants;
use super::way::Way;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longer scripts are read in part.
const MOST: u64 = 64 << 10;
/// Folders that each process has of its own, with the same names.
const OWN: [&str; 7] = ["/", "/tmp", "/var/tmp", "/dev/shm", "/run", "/dev", "/proc"];

/// True for a program that the lab has without the other files of its folder.
pub fn is_alone(program: &Path) -> bool {
    let mut grants = Grants::default();
    grants.program(program).is_ok() && program.parent().is_some_and(|folder| !grants.show(folder))
}

/// Absolute paths in the script of a program that exist here, and not in the lab when it runs there. Paths
/// with blanks, and those that are made of variables, are not known.
pub fn unseen(program: &Path) -> Vec<PathBuf> {
    let mut grants = Grants::default();
    let script = Way::to(program).ok().and_then(|way| script(way.names.last()?));
    let (Some(script), Ok(())) = (script, grants.program(program)) else { return Vec::new() };
    let is_of_kernel = |path: &Path| ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    let is_own = |path: &Path| is_of_kernel(path) || OWN.iter().any(|own| path == Path::new(own));
    paths(&script).into_iter().filter(|path| !is_own(path) && !grants.show(path)).collect()
}

/// The text of a script; `None` for other programs.
fn script(program: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(program).ok()?.take(MOST).read_to_end(&mut text).ok()?;
    text.starts_with(b"#!").then(|| String::from_utf8_lossy(&text).into_owned())
}

fn paths(script: &str) -> BTreeSet<PathBuf> {
    let is_part = |c: char| c.is_alphanumeric() || "/._+@-".contains(c);
    let lines = script.lines().filter(|line| !line.trim_start().starts_with('#'));
    // A path after `}` or `)` begins with the value of a variable.
    let words = lines.flat_map(|line| {
        let starts = line.match_indices('/').map(|(at, _)| at);
        let is_first = |at: &usize| !line[..*at].ends_with(|c| is_part(c) || "})".contains(c));
        starts.filter(is_first).map(|at| line[at..].split(|c| !is_part(c)).next().unwrap_or_default())
    });
    words.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn paths_are_whole_words_that_no_variable_begins() {
        let script = "#!/bin/sh\n# see /in/a/comment\nA=/a/b LIBRARY_PATH=\"/c:/d-1.2\" exec \"$HERE/x\" \
            ${A}/y $(dirname $0)/z '/e' relative/f\n";
        let found: Vec<PathBuf> = paths(script).into_iter().collect();
        assert_eq!(found, ["/a/b", "/c", "/d-1.2", "/e"].map(PathBuf::from));
    }

    #[test]
    fn what_a_script_names_outside_of_its_folder_is_found() {
        let folder = std::env::temp_dir().join(format!("linerate-unseen-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for name in ["app", "lib"] {
            fs::create_dir_all(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("x.so"), "").unwrap();
        }
        let program = folder.join("app/server");
        let at = folder.display();
        let script = format!("P={at}/app/x.so:{at}/lib/x.so:{at}/nothing exec /bin/sh < /dev/null > /tmp\n");
        fs::write(&program, format!("#!/bin/sh\n{script}")).unwrap();
        let found = unseen(&program);
        fs::write(&program, script).unwrap();
        let of_no_script = unseen(&program);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [folder.join("lib/x.so")]);
        assert!(of_no_script.is_empty());
    }
}
