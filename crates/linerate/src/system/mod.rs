//! Systems under test: `systems/<name>/system.toml`, and their presence on this machine.

pub mod build;
pub(crate) mod group;
pub mod install;
pub mod manifest;
pub mod probe;
pub mod template;

use crate::error::Error;
use crate::home;
use crate::lab::program::locate;
use crate::toml_file;
use linerate_contract::Role;
use linerate_contract::nearest::suggestion;
use manifest::{Manifest, Variant};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The client that verifies if the measuring client does not implement the contract.
pub const VERIFIER: &str = "native";

/// Every system of the folder.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// By folder name.
    pub systems: BTreeMap<String, System>,
}

#[derive(Debug, Clone)]
pub struct System {
    pub name: String,
    pub folder: PathBuf,
    pub manifest: Manifest,
}

/// A variant with its system.
#[derive(Debug, Clone, Copy)]
pub struct SystemVariant<'a> {
    pub system: &'a System,
    pub name: &'a str,
    pub variant: &'a Variant,
}

impl<'a> SystemVariant<'a> {
    /// The description of one of linerate's own systems.
    pub fn own(&self) -> Option<&'a str> {
        (self.system.manifest.own || self.variant.own).then_some(&*self.variant.about)
    }
}

impl Registry {
    /// Reads `systems/*/system.toml` of linerate and of the user's project.
    ///
    /// # Errors
    /// The first invalid manifest, with its line; or two variants or systems of the same name.
    pub fn load(home: &Path) -> Result<Self, Error> {
        let mut systems = BTreeMap::new();
        let all = home::folders(home, "systems")?.into_iter().map(|folder| sorted_entries(&folder));
        for folder in all.collect::<Result<Vec<_>, _>>()?.concat() {
            let file = folder.join("system.toml");
            if !file.is_file() {
                continue;
            }
            let text = fs::read_to_string(&file).map_err(Error::file(&file))?;
            let manifest = parse(&file, &text)?;
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if systems.contains_key(&name) {
                let file = file.display();
                return Err(Error::Input(format!(
                    "{file}: linerate has a system `{name}`: rename the folder"
                )));
            }
            systems.insert(name.clone(), System { name, folder, manifest });
        }
        let registry = Self { systems };
        registry.check_names()?;
        Ok(registry)
    }

    /// linerate's own client alone: a command of the user's may have the name of a system.
    pub fn of_client(mut self) -> Self {
        self.systems.retain(|name, _| name == VERIFIER);
        for system in self.systems.values_mut() {
            system.manifest.variants.retain(|name, _| name == VERIFIER);
            system.manifest.variants.values_mut().for_each(|variant| variant.roles = vec![Role::Client]);
        }
        self
    }

    fn check_names(&self) -> Result<(), Error> {
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for (variant, system) in self.variants().map(|c| (c.name, c.system.name.as_str())) {
            if let Some(other) = owners.insert(variant, system) {
                let place = format!("systems/{system}/system.toml");
                return Err(Error::Input(format!(
                    "{place}: the variant `{variant}` is also in systems/{other}: rename one of them"
                )));
            }
        }
        Ok(())
    }

    /// Every variant of every system.
    pub fn variants(&self) -> impl Iterator<Item = SystemVariant<'_>> {
        self.systems.values().flat_map(System::variants)
    }

    /// The variant of this name, if it has this role.
    ///
    /// # Errors
    /// An unknown name, with the nearest known one; or a variant without this role.
    pub fn variant(&self, name: &str, role: Role) -> Result<SystemVariant<'_>, String> {
        let Some(chosen) = self.variants().find(|c| c.name == name) else {
            let known = self.variants().filter(|c| c.plays(role)).map(|c| c.name);
            return Err(format!(
                "no system has a variant `{name}` for the {role}; {}",
                suggestion(name, known)
            ));
        };
        if chosen.plays(role) {
            return Ok(chosen);
        }
        let roles: Vec<String> = chosen.variant.roles.iter().map(ToString::to_string).collect();
        Err(format!("`{name}` cannot be the {role}: its roles are: {}", roles.join(", ")))
    }

    /// Whether this relay ends TLS.
    pub fn terminates_tls(&self, name: &str, role: Role) -> bool {
        role == Role::Relay && self.variant(name, role).is_ok_and(|chosen| chosen.variant.terminates_tls)
    }
}

impl System {
    pub fn variants(&self) -> impl Iterator<Item = SystemVariant<'_>> {
        let chosen = move |(name, variant)| SystemVariant { system: self, name, variant };
        self.manifest.variants.iter().map(|(name, variant)| (name.as_str(), variant)).map(chosen)
    }
}

impl SystemVariant<'_> {
    pub fn plays(&self, role: Role) -> bool {
        self.variant.roles.contains(&role)
    }

    /// A program or file that it needs and that is not on this machine.
    pub fn unmet_need(&self) -> Option<&str> {
        let mut needs = self.system.manifest.needs.iter().chain(&self.variant.needs);
        needs.find(|need| locate(need).is_none()).map(String::as_str)
    }

    /// Nothing is started: its setup installs rules of the kernel.
    pub fn consists_of_rules(&self) -> bool {
        self.variant.start.is_none() && !self.variant.setup.is_empty()
    }

    /// A client whose own output is read, since it does not print the events of the contract.
    pub fn is_foreign(&self) -> bool {
        self.variant.output.is_some()
    }

    /// A client that works for a given time: a foreign one has it in its arguments.
    pub fn is_timed(&self) -> bool {
        !self.is_foreign() || self.client_uses("duration") || self.client_uses("seconds")
    }

    /// A foreign client without fractions of a second.
    pub fn counts_whole_seconds(&self) -> bool {
        self.is_foreign() && !self.client_uses("duration")
    }

    /// Why an option of a table that is not the contract's would be refused or ignored in this role; `None`:
    /// it has its effect. Servers and relays that do not implement the contract get no options.
    pub fn lacks_option(&self, role: Role, name: &str) -> Option<String> {
        let (variant, placeholder) = (self.name, format!("options.{name}"));
        let accepts = self.variant.own_options.iter().any(|own| own == name);
        if self.uses(role, "{{ spec }}") {
            let why = || format!("variants.{variant}.own-options does not have it, nor does the contract");
            (!accepts).then(why)
        } else {
            let ignores = role == Role::Client && !accepts && !self.uses(role, &placeholder);
            let why = || format!("variants.{variant}.start has no {{{{ {placeholder} }}}}");
            ignores.then(why)
        }
    }

    fn client_uses(&self, name: &str) -> bool {
        self.uses(Role::Client, name)
    }

    fn uses(&self, role: Role, text: &str) -> bool {
        let arguments = self.variant.start.as_ref().and_then(|start| start.arguments(role));
        arguments.is_some_and(|all| all.iter().any(|one| one.contains(text)))
    }

    /// Whether a config template or an argument reads this name.
    pub fn reads(&self, name: &str) -> bool {
        self.names().contains(name)
    }

    /// The names that config templates and arguments read.
    fn names(&self) -> HashSet<String> {
        let configs = self.variant.configs.iter();
        let configs = configs.filter_map(|config| fs::read_to_string(self.system.folder.join(config)).ok());
        let arguments =
            self.variant.roles.iter().filter_map(|role| self.variant.start.as_ref()?.arguments(*role));
        let words = arguments.flatten().chain(self.variant.setup.iter().flatten()).cloned();
        configs.chain(words).filter_map(|text| template::variables(&text).ok()).flatten().collect()
    }

    /// The program to start: a name, or a template with the build's folder `out`.
    pub fn program(&self) -> Option<&str> {
        let manifest = &self.system.manifest;
        let build = manifest.build.as_ref().filter(|_| self.variant.start.is_some());
        let built = || build.map(|build| build.program.as_str());
        self.variant.program.as_deref().or(manifest.program.as_deref()).or_else(built)
    }
}

fn parse(file: &Path, text: &str) -> Result<Manifest, Error> {
    let manifest: Manifest = toml_file::parse(file, text)?;
    for (name, variant) in &manifest.variants {
        if variant.roles.is_empty() {
            return Err(Error::Input(format!(
                "{}: variants.{name}.roles is empty: add client, relay or server",
                file.display()
            )));
        }
        if let Some(start) = &variant.start
            && let Some(role) = variant.roles.iter().find(|role| start.arguments(**role).is_none())
        {
            let place = format!("{}: variants.{name}.start", file.display());
            return Err(Error::Input(format!(
                "{place} has no arguments for the role {role}: add `{role} = [...]`"
            )));
        }
        check_patterns(file, name, variant, manifest.version.as_ref())?;
        let folder = file.parent().unwrap_or(file);
        for config in &variant.configs {
            if !folder.join(config).is_file() {
                let place = format!("{}: variants.{name}.configs", file.display());
                return Err(Error::Input(format!("{place}: no file `{config}` in the system's folder")));
            }
        }
    }
    Ok(manifest)
}

/// Checks regular expressions before anything is started; they are compiled again when used.
fn check_patterns(
    file: &Path,
    name: &str,
    variant: &Variant,
    version: Option<&manifest::VersionProbe>,
) -> Result<(), Error> {
    let version = variant.version.as_ref().or(version).map(|probe| ("version".to_owned(), &probe.pattern));
    let output = variant.output.iter().flat_map(manifest::OutputPatterns::patterns);
    let output = output.map(|(key, pattern)| (format!("output.{key}"), pattern));
    for (key, pattern) in version.into_iter().chain(output) {
        let place = format!("{}: variants.{name}: {key}", file.display());
        match regex::Regex::new(pattern) {
            Err(e) => return Err(Error::Input(format!("{place}: {e}"))),
            Ok(regex) if regex.captures_len() < 2 => {
                return Err(Error::Input(format!(
                    "{place}: `{pattern}` has no group: put (...) around the value"
                )));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Files and folders in alphabetical order, so that the order of variants and suites is deterministic.
pub(crate) fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::file(folder))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Parameters;
    use linerate_contract::Layer;

    #[test]
    fn a_manifest_with_a_wrong_key_names_file_line_and_key() {
        let text = "about = \"x\"\n[variants.a]\nabout = \"y\"\nroles = [\"relay\"]\nstrat = []\n";
        let error = parse(Path::new("systems/a/system.toml"), text).unwrap_err().to_string();
        for part in ["systems/a/system.toml:5:", "strat", "nearest: \"start\""] {
            assert!(error.contains(part), "{part} is missing in: {error}");
        }
    }

    #[test]
    fn arguments_may_differ_by_role_and_every_role_needs_them() {
        let text = "about = \"x\"\n[variants.a]\nabout = \"y\"\nroles = [\"client\", \"server\"]\n\
                    [variants.a.start]\nclient = [\"-c\"]\n";
        let path = Path::new("systems/a/system.toml");
        let error = parse(path, text).unwrap_err().to_string();
        assert!(error.contains("variants.a.start") && error.contains("server"), "{error}");
        let manifest = parse(path, &format!("{text}server = [\"-s\"]\n")).unwrap();
        let start = manifest.variants["a"].start.as_ref().unwrap();
        assert_eq!(start.arguments(Role::Server), Some(&["-s".to_owned()][..]));
    }

    #[test]
    fn every_setting_of_the_tree_is_read_by_a_variant() {
        let registry = Registry::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        for system in registry.systems.values() {
            for key in system.manifest.settings.keys() {
                assert!(system.variants().any(|variant| variant.reads(key)), "{}: {key}", system.name);
            }
        }
    }

    /// A config may be a link to that of another system, whose settings it then needs.
    #[test]
    fn every_name_in_a_config_of_the_tree_has_a_value() {
        let registry = Registry::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        let of_trials = "connect dir docroot duration listen options spec tls upstream workers".split(' ');
        let known: HashSet<&str> = of_trials.chain(Parameters::NAMES.iter().copied()).collect();
        for variant in registry.variants() {
            let settings = &variant.system.manifest.settings;
            let mut names = variant.names().into_iter();
            let unknown = names.find(|name| !known.contains(&**name) && !settings.contains_key(name));
            assert_eq!(unknown, None, "{}", variant.name);
        }
    }

    #[test]
    fn every_relay_that_ends_tls_has_the_certificate_and_no_other_relay_does() {
        let registry = Registry::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        let relays: Vec<_> = registry.variants().filter(|variant| variant.plays(Role::Relay)).collect();
        let ending = relays.iter().filter(|relay| registry.terminates_tls(relay.name, Role::Relay)).count();
        assert!(ending > 0);
        for relay in relays {
            let ends = registry.terminates_tls(relay.name, Role::Relay);
            assert_eq!(relay.reads("tls"), ends, "{}", relay.name);
            assert_eq!(relay.variant.layers == [Layer::Https], ends, "{}", relay.name);
        }
    }

    #[test]
    fn a_missing_config_file_is_named() {
        let text =
            "about = \"x\"\n[variants.a]\nabout = \"y\"\nroles = [\"relay\"]\nconfigs = [\"none.cfg\"]\n";
        let error = parse(Path::new("systems/a/system.toml"), text).unwrap_err().to_string();
        assert!(error.contains("variants.a.configs") && error.contains("none.cfg"), "{error}");
    }
}
