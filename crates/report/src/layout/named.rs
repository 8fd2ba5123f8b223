//! Axis values as text: each name once.

/// `iperf` for a pair of two equal names. A comma would separate two names in a sentence: `native + beast`.
pub(crate) fn short(value: &str) -> String {
    match value.split_once(", ") {
        Some((client, server)) if client == server => client.to_owned(),
        Some((client, server)) => format!("{client} + {server}"),
        None => value.to_owned(),
    }
}

/// `pair iperf` for a pair, its client and its server: the pair contains both names.
pub(crate) fn named<'a>(axes: impl Iterator<Item = &'a (String, String)>) -> String {
    let axes: Vec<_> = axes.collect();
    let pair = axes.iter().find(|(axis, _)| axis == "pair").map_or("", |(_, names)| names);
    let is_in_pair = |axis: &str, value: &str| {
        ["client", "server"].contains(&axis) && pair.split(", ").any(|name| name == value)
    };
    let kept = axes.iter().filter(|(axis, value)| !is_in_pair(axis, value));
    kept.map(|(axis, value)| format!("{axis} {}", short(value))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn a_pair_contains_the_names_of_its_client_and_its_server() {
        let of = |axes: &[(&str, &str)]| {
            let axes: Vec<_> = axes.iter().map(|(a, v)| ((*a).to_owned(), (*v).to_owned())).collect();
            named(axes.iter())
        };
        let pair = |pair, client, server| of(&[("pair", pair), ("client", client), ("server", server)]);
        assert_eq!(pair("iperf, iperf", "iperf", "iperf"), "pair iperf");
        assert_eq!(pair("native, beast", "native", "beast"), "pair native + beast");
        assert_eq!(pair("native", "native", "nginx"), "pair native, server nginx");
        assert_eq!(of(&[("client", "native"), ("server", "native")]), "client native, server native");
        assert_eq!(of(&[("threads", "1"), ("connections", "1")]), "threads 1, connections 1");
    }
}
