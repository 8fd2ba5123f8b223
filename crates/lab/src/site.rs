//! One way to raise a lab, by where the processes of a run are.

use crate::hosts::{Hosts, Server, Watched};
use crate::listening::Port;
use crate::namespaces::Namespaces;
use crate::{Lab, LabError};
use linerate_model::{Place, PlannedHost};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where the processes of a run are.
#[derive(Debug, Clone)]
pub enum Site {
    /// All on this machine, in a network of their own or in that of the machine, beside the servers that run
    /// already and have these ports.
    Here(Place, Vec<Port>),
    /// Each role on a machine.
    Roles(Vec<PlannedHost>),
    /// The client on this machine; the CPU time of these servers, which run already, is read.
    Watched(Vec<Server>),
}

impl Site {
    /// Raises the lab. `home` has the program that is copied to other machines.
    ///
    /// # Errors
    /// [`LabError::Lost`]: the kernel refuses it, or a machine cannot be reached; with the remedy.
    pub fn raise(&self, home: &Path, interrupted: Arc<AtomicBool>) -> Result<Box<dyn Lab>, LabError> {
        Ok(match self {
            Self::Here(place, servers) => {
                Box::new(Namespaces::raise(place, interrupted)?.beside(servers.clone()))
            }
            Self::Roles(hosts) => Box::new(Hosts::raise(hosts.clone(), home, interrupted)?),
            Self::Watched(servers) => Box::new(Watched::raise(servers, home, interrupted)?),
        })
    }
}
