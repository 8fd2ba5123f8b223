//! Several builds at the same time: most have one source file, which keeps one CPU busy.

use super::{Builds, Permission, Site, System, cache, make, place};
use crate::interrupt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

/// The reports of a worker to the caller's thread, which prints it.
enum Report {
    Note(String),
    Done(String, Result<PathBuf, String>),
}

impl Builds<'_> {
    /// Makes what these systems lack, if that is permitted: as many at a time as the machine has CPUs, and
    /// one more, since one often waits for cargo's lock or for a registry.
    pub fn make_several(&mut self, systems: &[&System]) {
        let Permission::Build(note) = self.permission else { return };
        let Ok(cache) = cache() else { return };
        let mut missing: Vec<(&System, Site)> = Vec::new();
        for system in systems {
            let site = system.manifest.build.as_ref().map(|build| place(system, build, &[], &cache));
            missing
                .extend(site.and_then(Result::ok).filter(|site| !site.is_made()).map(|site| (*system, site)));
        }
        let workers = missing.len().min(thread::available_parallelism().map_or(1, usize::from) + 1);
        let (queue, interrupted) = (Mutex::new(missing.into_iter()), interrupt::watch());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let (sender, reports) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..workers {
                let sender = sender.clone();
                let (next, interrupted) = (&next, &interrupted);
                scope.spawn(move || {
                    // The receiver is there until all workers have ended.
                    let report = |report| drop(sender.send(report));
                    while !interrupted.load(Ordering::Relaxed)
                        && let Some((system, site)) = next()
                    {
                        let note = |text: &str| report(Report::Note(text.to_owned()));
                        // None: interrupted, as this loop sees.
                        if let Some(outcome) = make(system, site, &[], &note) {
                            report(Report::Done(system.name.clone(), outcome));
                        }
                    }
                });
            }
            drop(sender);
            for report in reports {
                match report {
                    Report::Note(text) => note(&text),
                    Report::Done(name, outcome) => drop(self.known.insert((name, Vec::new()), outcome)),
                }
            }
        });
        self.interrupted |= interrupted.load(Ordering::Relaxed);
    }
}
