//! A revision of a repository, built in a worktree of its own: an arm with `git=`.
//!
//! The worktree is a clone in the cache folder that shares the checkout's objects, so the checkout itself is
//! not touched. Names of worktrees have one length: that of a path can change where a program's data is.

use super::inputs::hash_of;
use super::{Failure, MARK, begin_anew, lock, process};
use crate::lab::program;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The files of the checkout as they are now, without untracked ones.
pub const WORKING_TREE: &str = "working-tree";
/// Where the checkout's branch left the default branch.
pub const MERGE_BASE: &str = "merge-base";

/// A repository, and how a revision of it is built.
#[derive(Debug)]
pub struct Repository<'a> {
    pub checkout: &'a Path,
    /// A shell command, run in the worktree.
    pub build: &'a str,
    /// The program's path in the worktree.
    pub program: Option<&'a str>,
}

impl Repository<'_> {
    /// The commit of a revision, of [`WORKING_TREE`] or of [`MERGE_BASE`].
    ///
    /// # Errors
    /// git's own message.
    pub fn commit(&self, revision: &str) -> Result<String, String> {
        let git = |arguments: &[&str]| git(self.checkout, arguments);
        if let Err(reason) = git(&["rev-parse", "--git-dir"]) {
            let no_git = reason.starts_with(NO_GIT);
            return Err(if no_git {
                reason
            } else {
                format!(
                    "{}: this folder is in no git repository, and revisions are compared: run it in the \
                 repository of the server, or name that with --checkout DIR; two programs are compared \
                 without git: './old' './new'",
                    self.checkout.display()
                )
            });
        }
        match revision {
            WORKING_TREE => match git(&["stash", "create"])? {
                unchanged if unchanged.is_empty() => git(&["rev-parse", "HEAD"]),
                changed => Ok(changed),
            },
            MERGE_BASE => git(&["merge-base", "HEAD", &self.default_branch()?]),
            _ => git(&["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
                .map_err(|_| format!("{}: there is no revision `{revision}`", self.checkout.display())),
        }
    }

    fn default_branch(&self) -> Result<String, String> {
        let candidates = ["origin/HEAD", "origin/main", "origin/master", "main", "master"];
        let exists = |name: &&str| git(self.checkout, &["rev-parse", "--verify", "--quiet", name]).is_ok();
        candidates.into_iter().find(exists).map(str::to_owned).ok_or_else(|| {
            format!(
                "{}: there is no branch main or master to find the merge base with; name the revision: \
                 --base git=REV",
                self.checkout.display()
            )
        })
    }

    /// Builds a commit, or finds it built; returns the checkout's folder in its worktree.
    ///
    /// # Errors
    /// Why it cannot be built, with the last lines of the output.
    pub fn worktree(&self, commit: &str, note: impl Fn(&str)) -> Result<PathBuf, Failure> {
        let checkout = self.checkout.canonicalize();
        let checkout = checkout.map_err(|e| format!("{}: {e}", self.checkout.display()))?;
        let key = hash_of(&(&checkout, commit, self.build));
        let site = arms()?.join(key);
        let tree = site.join("tree").join(self.inside()?);
        if !site.join(MARK).exists() {
            self.make(commit, &site, &tree, note)?;
        }
        let missing = self.program.map(|program| tree.join(program)).filter(|program| !program.exists());
        match missing {
            Some(program) => {
                Err(format!("its build ends well, but there is no {}", program.display()).into())
            }
            None => Ok(tree),
        }
    }

    /// The checkout's folder inside of its repository; empty for the repository's own.
    fn inside(&self) -> Result<PathBuf, String> {
        git(self.checkout, &["rev-parse", "--show-prefix"]).map(PathBuf::from)
    }

    fn make(&self, commit: &str, site: &Path, tree: &Path, note: impl Fn(&str)) -> Result<(), Failure> {
        let lock = lock(&site.with_extension("lock"))?;
        if site.join(MARK).exists() {
            return Ok(()); // another linerate built it meanwhile
        }
        let short = &commit[..commit.len().min(12)];
        note(&format!("building {short} of {} (kept for later runs)", self.checkout.display()));
        let start = Instant::now();
        begin_anew(site)?;
        let log = site.join("log");
        let run = |words: &[&str], folder: &Path| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            process::run(&words, folder, &[], &log, &lock)
        };
        let from = git(self.checkout, &["rev-parse", "--show-toplevel"])?;
        run(&["git", "clone", "--quiet", "--shared", "--no-checkout", &from, "tree"], site)?;
        run(&["git", "checkout", "--quiet", "--detach", commit], &site.join("tree"))?;
        run(&["sh", "-c", self.build], tree)?;
        super::mark(site)?;
        note(&format!("built {short} in {} s", start.elapsed().as_secs()));
        Ok(())
    }
}

/// The folder of all arms.
fn arms() -> Result<PathBuf, String> {
    let cache = program::cache().ok_or("no folder to build in: neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("arms"))
}

/// The output of git in a checkout.
const NO_GIT: &str = "cannot run git";

fn git(checkout: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").arg("-C").arg(checkout).args(arguments).output();
    let output = output.map_err(|e| format!("{NO_GIT}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: git {}: {}", checkout.display(), arguments.join(" "), message.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_no_repository_is_refused_with_the_way_out() {
        let repository = Repository { checkout: Path::new("/"), build: "true", program: None };
        for revision in [MERGE_BASE, WORKING_TREE, "HEAD"] {
            let error = repository.commit(revision).unwrap_err();
            assert!(
                error.starts_with("/: this folder is in no git repository") && error.contains("--checkout")
            );
        }
    }
}
