//! Suites on many hosts, by engines that exist: the text that they run. linerate submits nothing.

pub(crate) mod kubernetes;
pub(crate) mod slurm;

/// The work of a fleet.
#[derive(Debug)]
pub(crate) struct FleetJobs {
    pub(crate) suites: Vec<String>,
    pub(crate) quick: bool,
    /// Types of machines; empty: any.
    pub(crate) machines: Vec<String>,
}

impl FleetJobs {
    /// The options of `linerate run`, with a space before them.
    fn options(&self) -> &'static str {
        if self.quick { " --quick" } else { "" }
    }
}
