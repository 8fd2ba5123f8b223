//! `path = { ... }` of a suite's table: keys, templates and axes into a [`NetworkPath`].

use crate::path::{Device, IMPAIRMENTS, Impairment, Link, MOST_ROUTERS, Means, NetworkPath, Shape};
use linerate_contract::nearest::suggestion;
use std::collections::BTreeMap;
use toml::{Table, Value};

const OF_LINK: [&str; 4] = ["mtu", "means", "up", "down"];
const OF_PATH: [&str; 3] = ["device", "routers", "links"];
const DEVICES: [(&str, Device); 4] = [
    ("loopback", Device::Loopback),
    ("veth", Device::Veth),
    ("tun", Device::Tun),
    ("tun-pair", Device::TunPair),
];
const MEANS: [(&str, Means); 3] = [("auto", Means::Auto), ("kernel", Means::Kernel), ("relay", Means::Relay)];
/// The path of a cell. `render` fills the axes into a template; `axes` are the cell's, and those with the
/// name of an impairment, or `routers`, are keys of the path that has not the same key itself.
///
/// # Errors
/// The key and the reason; an unknown key with the nearest known one.
pub(super) fn read<'a>(
    entry: Option<&Value>,
    axes: impl IntoIterator<Item = (&'a str, &'a str)>,
    render: &dyn Fn(&str, &str) -> Result<String, String>,
) -> Result<NetworkPath, String> {
    let mut table = match entry {
        None => Table::new(),
        Some(Value::Table(table)) => table.clone(),
        Some(Value::String(word)) => return with_axes(shape(word)?, axes, render),
        Some(other) => return Err(format!("path: expected a table or a word, not {}", other.type_str())),
    };
    add_axes(&mut table, axes);
    path(&table, render)
}

/// A shape by its word; axes may impair it.
fn with_axes<'a>(
    shape: NetworkPath,
    axes: impl IntoIterator<Item = (&'a str, &'a str)>,
    render: &dyn Fn(&str, &str) -> Result<String, String>,
) -> Result<NetworkPath, String> {
    let mut table = Table::new();
    add_axes(&mut table, axes);
    if table.is_empty() {
        return Ok(shape);
    }
    let device = DEVICES.iter().find(|(_, device)| *device == shape.device).map_or("veth", |(word, _)| word);
    table.insert("device".into(), device.into());
    table.entry("routers").or_insert(Value::Integer(shape.routers() as i64));
    path(&table, render)
}

fn add_axes<'a>(table: &mut Table, axes: impl IntoIterator<Item = (&'a str, &'a str)>) {
    for (name, value) in axes {
        // A whole number is the parameter `rate`: operations per second.
        let is_parameter = name == "rate" && value.parse::<u64>().is_ok();
        if (IMPAIRMENTS.contains(&name) || name == "routers") && !is_parameter {
            table.entry(name).or_insert_with(|| value.into());
        }
    }
}

fn shape(word: &str) -> Result<NetworkPath, String> {
    Ok(choose("path", word, &Shape::WORDS)?.into())
}

/// Variables of an entry's templates are looked for in all its texts.
pub(super) fn texts(entry: &Value) -> Vec<&str> {
    match entry {
        Value::String(text) => vec![text],
        Value::Table(table) => table.iter().flat_map(|(_, value)| texts(value)).collect(),
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Keys with their place in the file and the function that fills axes into templates.
struct Keys<'a> {
    place: String,
    table: &'a Table,
    render: &'a dyn Fn(&str, &str) -> Result<String, String>,
}

impl<'a> Keys<'a> {
    fn new(
        place: String,
        table: &'a Table,
        known: &[&[&str]],
        render: &'a dyn Fn(&str, &str) -> Result<String, String>,
    ) -> Result<Self, String> {
        let known = || known.iter().flat_map(|names| names.iter().copied());
        match table.keys().find(|key| !known().any(|name| name == key.as_str())) {
            Some(key) => Err(format!("{place}.{key}: there is no key `{key}`; {}", suggestion(key, known()))),
            None => Ok(Self { place, table, render }),
        }
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        let place = self.at(key);
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => (self.render)(&place, text).map(Some),
            Some(Value::Integer(number)) => Ok(Some(number.to_string())),
            Some(Value::Float(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(format!("{place}: expected a text or a number, not {}", other.type_str())),
        }
    }

    fn read<T>(&self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        let text = self.text(key)?;
        text.map(|text| parse(&text).map_err(|e| format!("{}: {e}", self.at(key)))).transpose()
    }

    fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, String> {
        let text = self.text(key)?;
        text.map(|text| choose(&self.at(key), &text, words)).transpose()
    }

    fn table(&self, key: &str) -> Result<Option<&'a Table>, String> {
        let value = self.table.get(key);
        value
            .map(|value| value.as_table().ok_or_else(|| format!("{}: expected a table", self.at(key))))
            .transpose()
    }

    fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.place)
    }
}

fn choose<T: Copy>(place: &str, word: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(known, _)| *known == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known = suggestion(word, words.iter().map(|(known, _)| *known));
        format!("{place}: `{word}` is not one of the known words; {known}")
    })
}

fn path(table: &Table, render: &dyn Fn(&str, &str) -> Result<String, String>) -> Result<NetworkPath, String> {
    let keys = Keys::new("path".into(), table, &[&OF_PATH, &OF_LINK, &IMPAIRMENTS], render)?;
    let device = keys.word("device", &DEVICES)?.unwrap_or_default();
    let routers = keys.read("routers", |text| {
        let number = text.parse().ok().filter(|number| *number <= MOST_ROUTERS);
        number.ok_or_else(|| format!("`{text}` is not a number of routers up to {MOST_ROUTERS}"))
    })?;
    let mut path = NetworkPath::new(device, routers.unwrap_or(usize::from(device == Device::Veth)));
    if let Some(links) = table.get("links") {
        let own = OF_LINK.iter().chain(&IMPAIRMENTS).find(|key| table.contains_key(**key) && **key != "mtu");
        if let Some(key) = own.copied().or(routers.and(Some("routers"))) {
            return Err(format!("path.{key}: `links` describes each link; move `{key}` into one of them"));
        }
        let links = links.as_array().filter(|links| (1..=MOST_ROUTERS + 1).contains(&links.len()));
        let links = links.ok_or(format!("path.links: expected 1 to {} tables", MOST_ROUTERS + 1))?;
        path = NetworkPath::new(device, links.len() - 1);
        for (number, (entry, to)) in links.iter().zip(&mut path.links).enumerate() {
            let entry = entry.as_table().ok_or("path.links: expected tables")?;
            let place = format!("path.links {}", number + 1);
            link(&Keys::new(place, entry, &[&OF_LINK, &IMPAIRMENTS], render)?, to)?;
        }
    } else {
        link(&keys, &mut path.links[0])?;
    }
    if let Some(mtu) = keys.read("mtu", mtu)? {
        path.links.iter_mut().for_each(|link| link.mtu = mtu);
    }
    if device == Device::Loopback && (path.has_router() || path.is_impaired()) {
        return Err("path.device: packets of the loopback pass no link that could impair or route them; \
                    use device = \"veth\""
            .into());
    }
    path.adapt(None, None);
    Ok(path)
}

fn link(keys: &Keys<'_>, link: &mut Link) -> Result<(), String> {
    if let Some(mtu) = keys.read("mtu", mtu)? {
        link.mtu = mtu;
    }
    link.means = keys.word("means", &MEANS)?.unwrap_or_default();
    for (key, to) in [("up", &mut link.up), ("down", &mut link.down)] {
        let empty = Table::new();
        let own = keys.table(key)?;
        let own = Keys::new(keys.at(key), own.unwrap_or(&empty), &[&IMPAIRMENTS], keys.render)?;
        *to = impairment(keys, &own)?;
    }
    Ok(())
}

/// One direction: its own keys, and those of both.
fn impairment(both: &Keys<'_>, own: &Keys<'_>) -> Result<Option<Impairment>, String> {
    let keys = |key: &str| if own.table.contains_key(key) { own } else { both };
    if !IMPAIRMENTS.iter().any(|key| keys(key).table.contains_key(*key)) {
        return Ok(None);
    }
    let set = IMPAIRMENTS.iter().filter_map(|key| Some((*key, keys(key).text(key).transpose()?)));
    let set: BTreeMap<&str, String> =
        set.map(|(key, text)| Ok((key, text?))).collect::<Result<_, String>>()?;
    let impairment = Impairment::read(|key| set.get(key).map(String::as_str));
    impairment.map(Some).map_err(|(key, reason)| format!("{}: {reason}", keys(key).at(key)))
}

fn mtu(text: &str) -> Result<u32, String> {
    // RFC 791: every link carries 68 bytes, and no packet has more than 65,535.
    let mtu = text.parse().ok().filter(|mtu| (68..=65_536).contains(mtu));
    mtu.ok_or_else(|| format!("`{text}` is not an MTU from 68 to 65536"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::units::{BitRate, Share};
    use linerate_contract::{Bytes, Nanos};

    fn path_of(text: &str, axes: &[(&str, &str)]) -> Result<NetworkPath, String> {
        let table: Table = toml::from_str(text).unwrap();
        read(table.get("path"), axes.iter().copied(), &|_, text| Ok(text.replace("@", "20ms")))
    }

    #[test]
    fn without_an_entry_the_path_has_one_router() {
        assert_eq!(path_of("", &[]), Ok(Shape::Router.into()));
        assert_eq!(path_of("path = \"loopback\"", &[]), Ok(Shape::Loopback.into()));
        assert_eq!(path_of("path = { device = \"tun\" }", &[]), Ok(Shape::Tun.into()));
    }

    #[test]
    fn each_way_has_the_common_values_and_its_own() {
        let path =
            path_of("path = { routers = 2, delay = \"@\", rate = \"10Mbit\", up.rate = \"1Mbit\" }", &[]);
        let path = path.unwrap();
        let [up, down] = [path.links[0].up, path.links[0].down].map(Option::unwrap);
        assert_eq!((path.routers(), up.delay, down.delay), (2, Nanos(20_000_000), Nanos(20_000_000)));
        assert_eq!((up.rate, down.rate), (Some(BitRate(1_000_000)), Some(BitRate(10_000_000))));
        assert_eq!((up.queue, down.queue), (Some(Bytes(15_140)), Some(Bytes(125_000))));
        assert!(!path.links[1].is_impaired() && !path.links[2].is_impaired());
        let up_only = path_of("path = { up = { loss = \"1%\" } }", &[]).unwrap();
        assert_eq!((up_only.links[0].up.is_some(), up_only.links[0].down), (true, None));
    }

    #[test]
    fn axes_are_keys_and_the_table_has_its_own_first() {
        let axes = [("delay", "100ms"), ("loss", "1%"), ("system", "native"), ("rate", "5000")];
        let path = path_of("path = { delay = \"5ms\", routers = 0 }", &axes).unwrap();
        let up = path.links[0].up.unwrap();
        assert_eq!((up.delay, up.loss, up.rate), (Nanos(5_000_000), Share(0.01), None));
        let shaped = path_of("path = \"link\"", &[("rate", "10Mbit")]).unwrap();
        assert_eq!((shaped.routers(), shaped.links[0].up.unwrap().rate), (0, Some(BitRate(10_000_000))));
        assert_eq!(path_of("path = \"link\"", &[("system", "native")]), Ok(Shape::Link.into()));
    }

    #[test]
    fn zero_is_a_means_without_an_effect() {
        let path = path_of("path = { delay = \"0\" }", &[]).unwrap();
        assert_eq!(path.links[0].up, Some(Impairment::default()));
    }

    #[test]
    fn links_are_described_one_by_one() {
        let path = path_of("path = { mtu = 9000, links = [{ delay = \"@\" }, {}, { loss = \"1%\" }] }", &[]);
        let path = path.unwrap();
        assert_eq!(path.links.iter().map(Link::is_impaired).collect::<Vec<_>>(), [true, false, true]);
        assert!(path.links.iter().all(|link| link.mtu == 9_000));
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_key_and_the_nearest_name() {
        for (text, message) in [
            ("path = \"lopback\"", "path: `lopback` is not one of the known words; nearest: \"loopback\""),
            ("path = { dealy = \"1ms\" }", "path.dealy: there is no key `dealy`; nearest: \"delay\""),
            ("path = { up = { los = \"1%\" } }", "path.up.los: there is no key `los`; nearest: \"loss\""),
            ("path = { device = \"vet\" }", "path.device: `vet` is not one of"),
            ("path = { delay = \"20\" }", "path.delay: `20` is not a time"),
            ("path = { routers = 9 }", "path.routers: `9` is not a number of routers up to 8"),
            ("path = { jitter = \"1ms\" }", "path.jitter: it cannot exceed the delay"),
            ("path = { reorder = \"1%\" }", "path.reorder: packets overtake only"),
            ("path = { loss = \"60%\", burst = 1 }", "path.loss: no such share"),
            ("path = { burst = 0.5 }", "path.burst: `0.5` is not a mean number"),
            ("path = { device = \"loopback\", delay = \"1ms\" }", "use device = \"veth\""),
            ("path = { device = \"loopback\", routers = 1 }", "use device = \"veth\""),
            ("path = { links = [{}], delay = \"1ms\" }", "move `delay` into one of them"),
            ("path = { links = [] }", "path.links: expected 1 to 9 tables"),
            ("path = { mtu = 10 }", "path.mtu: `10` is not an MTU"),
            ("path = 5", "path: expected a table or a word, not integer"),
        ] {
            let error = path_of(text, &[]).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
