//! Finds the folder of suites and systems.

use crate::error::Error;
use nix::unistd::geteuid;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folder with `suites/` and `systems/`: `LINERATE_HOME`, or the nearest one at or above the current
/// folder, or at or above the program itself; then that of an installed package, and the checkout from which
/// `cargo install --path` built the program.
///
/// # Errors
/// No such folder exists.
pub fn find() -> Result<PathBuf, Error> {
    if let Some(home) = std::env::var_os("LINERATE_HOME") {
        let home = PathBuf::from(home);
        return if is_home(&home) {
            Ok(home)
        } else {
            Err(Error::Input(format!(
                "LINERATE_HOME is {}, which has no suites/ and systems/: set it to linerate's checkout",
                home.display()
            )))
        };
    }
    let program = std::env::current_exe().ok();
    let starts = [std::env::current_dir().ok(), program.clone()];
    let above = starts.iter().flatten().flat_map(|start| start.ancestors()).map(Path::to_owned);
    let installed = program.and_then(|path| Some(path.parent()?.join("../share/linerate")));
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let all = above.chain(installed).chain([built]);
    let found = all.into_iter().find(|folder| is_home(folder));
    found.map(|folder| folder.canonicalize().unwrap_or(folder)).ok_or_else(|| {
        Error::Input(
            "no suites/ and systems/ here or above: \
             run linerate inside its checkout, or set LINERATE_HOME to it"
                .into(),
        )
    })
}

/// The file of a repository whose server linerate compares.
pub const PROJECT: &str = "linerate.toml";

/// The nearest folder with such a file, at or above the current one. A file above is the user's own, root's,
/// or that of the user of sudo(8): what it says is executed.
///
/// # Errors
/// The file belongs to another user.
pub fn project() -> Result<Option<PathBuf>, Error> {
    let Ok(current) = std::env::current_dir() else { return Ok(None) };
    let Some(folder) = current.ancestors().find(|folder| folder.join(PROJECT).is_file()) else {
        return Ok(None);
    };
    let file = folder.join(PROJECT);
    let owner = file.metadata().map_err(Error::file(&file))?.uid();
    if folder == current || is_own(owner) {
        return Ok(Some(folder.to_owned()));
    }
    Err(Error::Input(format!(
        "{}: it belongs to user {owner}, and its commands would be executed: run linerate in {} if you \
         trust it",
        file.display(),
        folder.display()
    )))
}

fn is_own(user: u32) -> bool {
    let of_sudo = std::env::var("SUDO_UID").ok().and_then(|id| id.parse().ok());
    user == 0 || user == geteuid().as_raw() || of_sudo == Some(user)
}

/// The folders of this name in linerate's home, and beside the file of the project.
///
/// # Errors
/// As of [`project`].
pub(crate) fn folders(home: &Path, name: &str) -> Result<Vec<PathBuf>, Error> {
    let own = project()?.map(|folder| folder.join(name));
    let own = own.filter(|folder| folder.is_dir() && *folder != home.join(name));
    Ok([home.join(name)].into_iter().chain(own).collect())
}

/// Replaces the user's home folder by `~`, so that published reports contain no user name.
pub fn shortened(text: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    if home.len() > 1 { text.replace(home.trim_end_matches('/'), "~") } else { text.to_owned() }
}

fn is_home(folder: &Path) -> bool {
    // A user's project may have its own beside its file.
    let is_project = folder.join(PROJECT).exists();
    folder.join("suites").is_dir() && folder.join("systems").is_dir() && !is_project
}
