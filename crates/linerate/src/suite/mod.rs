//! Suites: `suites/<name>.toml` in, cells out.

mod expand;
pub mod file;
mod names;
mod path;
mod published;

use crate::bounded;
use crate::error::Error;
use crate::home;
use crate::measurement::PlannedSuite;
use crate::system::{Registry, sorted_entries};
use crate::toml_file;
use expand::Key;
use file::SuiteFile;
use linerate_contract::nearest::suggestion;
use published::PublishedFile;
use std::path::{Path, PathBuf};

/// A suite with its file.
#[derive(Debug, Clone)]
pub struct Suite {
    pub name: String,
    pub path: PathBuf,
    pub file: SuiteFile,
    /// The figures of the document that it repeats.
    published: Option<PublishedFile>,
    /// The file as it is written, for the line of an error.
    text: String,
}

/// Which part of a suite runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All tables and rows.
    Complete,
    /// Cells that fit into a quarter of an hour.
    Full,
    /// Fewer tables, rows and operations.
    Quick,
    /// Only the tables that repeat a document's.
    Published,
    PublishedQuick,
}

/// Reads every `suites/*.toml` of linerate and of the user's project.
///
/// # Errors
/// The first file that is not valid, with its line; or two suites of one name.
pub fn load_all(home: &Path) -> Result<Vec<Suite>, Error> {
    let mut all: Vec<Suite> = Vec::new();
    for folder in home::folders(home, "suites")? {
        for path in sorted_entries(&folder)?.into_iter().filter(|path| is_suite_file(path)) {
            let suite = load(path)?;
            if let Some(other) = all.iter().find(|other| other.name == suite.name) {
                let (path, other) = (suite.path.display(), other.path.display());
                return Err(Error::Input(format!("{path} has the name of {other}: rename it")));
            }
            all.push(suite);
        }
    }
    Ok(all)
}

fn is_suite_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// The name of a suite, or of that in a file.
pub fn name_of(name: &str) -> &str {
    let path = Path::new(name);
    let stem = if is_suite_file(path) { path.file_stem() } else { None };
    stem.and_then(|stem| stem.to_str()).unwrap_or(name)
}

fn load(path: PathBuf) -> Result<Suite, Error> {
    let text = bounded::text(&path)?;
    let file = parse(&path, &text)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let published = PublishedFile::beside(&path)?;
    Ok(Suite { name, path, file, published, text })
}

fn parse(path: &Path, text: &str) -> Result<SuiteFile, Error> {
    toml_file::parse(path, text)
}

/// The word for every suite on the command line.
pub const ALL: &str = "all";

/// The suites of these names or files; every suite where none is named, or [`ALL`].
///
/// # Errors
/// An unknown name, with those that exist.
pub fn choose(mut all: Vec<Suite>, names: &[String]) -> Result<Vec<Suite>, Error> {
    let names = if names.iter().any(|name| name == ALL) { &[] } else { names };
    for file in names.iter().map(Path::new).filter(|name| is_suite_file(name)) {
        let suite = load(file.to_owned())?;
        all.retain(|other| other.name != suite.name);
        all.push(suite);
    }
    let names: Vec<&str> = names.iter().map(|name| name_of(name)).collect();
    for name in &names {
        if !all.iter().any(|suite| suite.name == *name) {
            let known = all.iter().map(|suite| suite.name.as_str());
            return Err(Error::Input(format!("there is no suite `{name}`; {}", suggestion(name, known))));
        }
    }
    let is_meant =
        |suite: &Suite| names.contains(&suite.name.as_str()) || names.is_empty() && !suite.file.apart;
    Ok(all.into_iter().filter(is_meant).collect())
}

impl Suite {
    /// Every cell and table of a form, with the systems still without versions.
    ///
    /// # Errors
    /// An inconsistency of the file, with its key.
    pub fn expand(&self, registry: &Registry, form: Form) -> Result<PlannedSuite, Error> {
        let SuiteFile { quick: of_quick, published: of_published, published_quick, .. } = &self.file;
        let (of_suite, changed) = match form {
            Form::PublishedQuick => (published_quick.as_ref().or(Some(of_quick)), Some(Key::Quick)),
            Form::Published => (of_published.as_ref(), Some(Key::Published)),
            Form::Quick => (Some(of_quick), Some(Key::Quick)),
            Form::Full => (None, Some(Key::Full)),
            Form::Complete => (None, None),
        };
        let (rounds, warmup_rounds, entry) = match of_suite {
            Some(changes) => (changes.rounds, changes.warmup_rounds, &changes.precision),
            None => (self.file.rounds, self.file.warmup_rounds, &self.file.precision),
        };
        let in_suite = |what: String| Error::Input(format!("{}: {what}", self.path.display()));
        let mut suite = PlannedSuite {
            name: self.name.clone(),
            question: self.file.question.clone(),
            rounds,
            warmup_rounds,
            solos: of_suite.map_or(self.file.solos, |changes| changes.solos),
            units: of_suite.map_or(self.file.units, |_| None),
            precision: entry.as_ref().map(file::PrecisionEntry::parse).transpose().map_err(in_suite)?,
            published: self.published.as_ref().map(PublishedFile::planned),
            ..PlannedSuite::default()
        };
        let is_part = |table: &&file::Table| match form {
            Form::Published | Form::PublishedQuick => {
                self.published.as_ref().is_some_and(|file| file.is_repeated_by(&table.name))
            }
            _ => !changed.is_some_and(|key| key.of_table(table).leave_out),
        };
        for table in self.file.tables.iter().filter(is_part) {
            let in_table = |what: String| {
                let line = names::line_of(&self.text, &table.name, &what);
                let line = line.map_or_else(String::new, |line| format!(":{line}"));
                Error::Input(format!("{}{line}: table `{}`: {what}", self.path.display(), table.name))
            };
            let (planned, cells) = expand::table(
                table,
                registry,
                &self.file.lists,
                changed.map(|key| expand::Form { of_suite, key }),
            )
            .map_err(in_table)?;
            for cell in cells {
                match suite.cells.iter().find(|known| known.id == cell.id) {
                    Some(known) if *known == cell => {}
                    Some(_) => {
                        return Err(in_table(format!(
                            "its cell `{}` differs from that of an earlier table",
                            cell.id
                        )));
                    }
                    None => suite.cells.push(cell),
                }
            }
            suite.tables.push(planned);
        }
        Ok(suite)
    }

    /// Whether it repeats a document.
    pub fn has_published(&self) -> bool {
        self.published.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{NetworkPath, Shape};
    use linerate_contract::Layer;

    fn of_the_tree(name: &str, form: Form) -> PlannedSuite {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let all = load_all(&home).unwrap();
        let registry = Registry::load(&home).unwrap();
        choose(all, &[name.to_owned()]).unwrap()[0].expand(&registry, form).unwrap()
    }

    #[test]
    fn every_suite_of_the_tree_is_valid_in_each_form() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        for suite in load_all(&home).unwrap() {
            for form in [Form::Quick, Form::Full, Form::Complete] {
                if let Err(error) = suite.expand(&registry, form) {
                    panic!("{form:?}: {error}");
                }
            }
        }
    }

    #[test]
    fn a_misspelt_name_is_refused_with_file_line_and_the_nearest_name() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let proxy = choose(load_all(&home).unwrap(), &["proxy".to_owned()]).unwrap().remove(0);
        for (right, wrong, message) in [
            (
                "connections = 5",
                "conections = 5",
                r#"`conections` is neither a parameter nor used by a template; nearest: "connections""#,
            ),
            ("[tables.axes]\nserver", "[tables.axes]\nthread = [1]\nserver", r#"nearest: "threads""#),
            ("rows = \"path\"", "rows = \"paht\"", r#"`paht` is not one of its axes; nearest: "path""#),
            ("baseline = { path = \"direct\" }", "baseline = { path = \"dirct\" }", r#"nearest: "direct""#),
            ("\"haproxy-tcp\",", "\"haproxy-tpc\",", r#"nearest: "haproxy-tcp""#),
            (
                "layer = \"http\"",
                "layer = \"http\"\noptions = { directoin = \"both\" }",
                r#"nearest: "direction""#,
            ),
            (
                "layer = \"http\"",
                "layer = \"http\"\npath = { dealy = \"1ms\" }",
                r#"path.dealy: there is no key `dealy`; nearest: "delay""#,
            ),
            ("layer = \"http\"", "layer = \"http\"\npath = \"loopback\"", "a relay is on a host of its own"),
            ("metric = \"seconds\"", "metrics = \"seconds\"", r#"nearest: "metric""#),
            ("no-choice = [\"iptables\"", "no-choice = [\"iptabels\"", r#"nearest: "iptables""#),
        ] {
            let text = proxy.text.replacen(right, wrong, 1);
            assert_ne!(text, proxy.text, "{right}");
            let error = parse(&proxy.path, &text).and_then(|file| {
                Suite { file, text, ..proxy.clone() }.expand(&registry, Form::Quick).map(|_| ())
            });
            let error = error.unwrap_err().to_string();
            assert!(error.contains(message), "{wrong}: {error}");
            assert!(error.contains("proxy.toml:"), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_transport_suite_has_what_its_seed_has_and_its_conditions() {
        let full = of_the_tree("transport", Form::Complete);
        for layer in [Layer::Tcp, Layer::Udp, Layer::Kcp] {
            let mut cells = full.cells.iter().filter(|cell| cell.layer == layer);
            assert!(cells.all(|cell| cell.parameters.seconds.is_none_or(|n| n == 10)), "{layer}");
        }
        let cell = |id: &str| full.cells.iter().find(|cell| cell.id == id).unwrap_or_else(|| panic!("{id}"));
        assert_eq!(cell("tcp/1/native").parameters.size, Some(63_488));
        assert_eq!(cell("udp/1/65507/native").parameters.size, Some(65_507));
        assert_eq!(cell("kcp/1/1024/10/native").options["interval_us"], "10");
        assert_eq!(cell("tcp/cpus-1/native").parameters.cpus, Some(1));
        assert_eq!(cell("tcp/loss-0.1%/native").path.to_string(), "veth, 1 router; each way loss 0.1 %");
        assert_eq!(
            cell("paths/10Mbit/20ms/1%/kcp").path.to_string(),
            "veth; each way 20 ms, loss 1 %, 10 Mbit/s with a queue of 125000 bytes"
        );
        let of_paths = full.cells.iter().filter(|cell| cell.id.starts_with("paths/"));
        assert_eq!(of_paths.count(), 2 * 3 * 2 * 3);
        assert_eq!(cell("udp-throughput/0.1/1472/native").options["search"], "0.1");
    }

    #[test]
    fn the_quick_transport_suite_is_short() {
        let quick = of_the_tree("transport", Form::Quick);
        let seconds: u64 = quick.cells.iter().map(|cell| cell.parameters.seconds.unwrap()).sum();
        // Four minutes; starting, verifying and stopping take a quarter of it.
        assert!(seconds * u64::from(quick.rounds + quick.warmup_rounds) <= 190, "{seconds} s a round");
        assert!(
            [Layer::Tcp, Layer::Udp, Layer::Kcp]
                .iter()
                .all(|layer| quick.cells.iter().any(|cell| cell.layer == *layer))
        );
    }

    #[test]
    fn loss_is_in_a_router_before_every_stack() {
        let full = of_the_tree("netstack", Form::Complete);
        let cell = |id: &str| full.cells.iter().find(|cell| cell.id == id).unwrap_or_else(|| panic!("{id}"));
        for (system, shape) in [
            ("ipstack", Shape::TunRouter),
            ("native-netstack", Shape::TunRouter),
            ("kernel-tun", Shape::TunPairRouter),
            ("kernel", Shape::Router),
        ] {
            for direction in ["client-reads", "client-writes"] {
                let cell = cell(&format!("loss/1%/{direction}/{system}"));
                let plain = NetworkPath::from(shape);
                assert_eq!((cell.path.device, cell.path.routers()), (plain.device, plain.routers()));
                assert!(cell.path.links[0].is_impaired() && !cell.path.links[1].is_impaired());
            }
        }
        assert_eq!(cell("stream/client-reads/single/ipstack").path, Shape::Tun.into());
        assert_eq!(cell("stream/client-reads/single/kernel").path, Shape::Link.into());
        assert!(of_the_tree("netstack", Form::Quick).cells.iter().all(|cell| !cell.id.starts_with("loss/")));
    }

    #[test]
    fn a_just_in_time_compiler_has_a_longer_warmup_than_its_baseline() {
        let full = of_the_tree("runtime", Form::Complete);
        let warmup = |id: &str| full.cells.iter().find(|cell| cell.id == id).unwrap().warmup.operations;
        assert_eq!(warmup("http/32x1/asio-async"), Some(200));
        assert_eq!(warmup("http/32x1/netty"), Some(50_000));
        assert_eq!(warmup("http/32x1/node"), Some(20_000));
    }

    #[test]
    fn two_relays_are_on_two_routers_and_an_axis_impairs_the_path() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let proxy = choose(load_all(&home).unwrap(), &["proxy".to_owned()]).unwrap().remove(0);
        let row = r#"relay = ["haproxy-tcp", "nftables"]"#;
        let text = proxy.text.replacen(r#"relay = "{{ path }}""#, row, 1);
        let file = parse(&proxy.path, &text).unwrap();
        let suite = Suite { file, text, ..proxy.clone() }.expand(&registry, Form::Quick).unwrap();
        let cell = &suite.cells[0];
        let names: Vec<&str> = cell.systems.iter().map(|system| system.name.as_str()).collect();
        assert_eq!(names, ["native", "haproxy-tcp", "nftables", "nginx"]);
        assert_eq!(cell.path.to_string(), "veth, 2 routers");
        let up = "layer = \"http\"\npath = { up.delay = \"{{ delay }}\" }";
        let text = proxy.text.replacen("layer = \"http\"", up, 1);
        let text = text.replacen("[tables.axes]\n", "[tables.axes]\ndelay = [\"5ms\"]\n", 1);
        let file = parse(&proxy.path, &text).unwrap();
        let suite = Suite { file, text, ..proxy.clone() }.expand(&registry, Form::Quick).unwrap();
        let once = "veth, 1 router; up 5 ms; down unchanged";
        assert_eq!(suite.cells[0].path.to_string(), once, "an axis in a template is no key besides");
        let twice =
            proxy.text.replacen(r#"server = "{{ server }}" }"#, r#"server = ["nginx", "nginx"] }"#, 1);
        let file = parse(&proxy.path, &twice).unwrap();
        let error = Suite { file, ..proxy }.expand(&registry, Form::Quick).unwrap_err().to_string();
        assert!(error.contains("roles.server: expected one name"), "{error}");
    }

    #[test]
    fn the_websocket_suite_has_the_rows_of_its_seed_in_their_order_both_ways() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let suite = choose(load_all(&home).unwrap(), &["websocket".to_owned()]).unwrap().remove(0);
        let seed = [
            ("iperf, iperf", "tcp"),
            ("asio-sync, asio-sync", "tcp"),
            ("asio-sync-tls, asio-sync-tls", "tls"),
            ("asio-sync, asio-async", "tcp"),
            ("asio-async, asio-sync", "tcp"),
            ("asio-async, asio-async", "tcp"),
            ("asio-async-tls, asio-async-tls", "tls"),
            ("websocketpp, websocketpp", "websocket"),
            ("websocketpp-tls, websocketpp-tls", "wss"),
            ("websocketpp, beast-async", "websocket"),
            ("beast-async, beast-async", "websocket"),
            ("websocketpp-tls, beast-async-tls", "wss"),
            ("beast-async-tls, beast-async-tls", "wss"),
            ("beast-async-tls, websocketpp-tls", "wss"),
        ];
        let planned = suite.expand(&registry, Form::Complete).unwrap();
        for direction in ["client-writes", "client-reads"] {
            let table = planned.tables.iter().find(|table| table.name == direction).unwrap();
            let ids: Vec<String> =
                seed.iter().map(|(pair, _)| format!("stream/{direction}/65536/{pair}")).collect();
            assert_eq!(table.cells[..seed.len()], ids);
            for (id, (pair, layer)) in ids.iter().zip(seed) {
                let cell = planned.cells.iter().find(|cell| cell.id == *id).unwrap();
                let without_tls = pair.replace("-tls", "");
                let systems: Vec<&str> = cell.systems.iter().map(|system| &*system.name).collect();
                assert_eq!((cell.layer.as_str(), systems.join(", ")), (layer, without_tls));
                assert_eq!(cell.parameters.bytes, Some(104_857_600));
                assert_eq!((cell.parameters.transfers, cell.parameters.seconds), (None, Some(1)));
            }
        }
    }

    #[test]
    fn a_suite_with_a_wrong_type_names_file_line_and_key() {
        let error = parse(Path::new("suites/x.toml"), "question = \"?\"\nrounds = \"ten\"\n")
            .unwrap_err()
            .to_string();
        for part in ["suites/x.toml:2:", "u32"] {
            assert!(error.contains(part), "{part} is missing in: {error}");
        }
    }
}
