//! The name of a function as a reader wants it: short, with what calls it.

use linerate_analysis::why::FunctionDifference;

/// Characters of a function's name on a terminal of 80 columns.
const LONGEST: usize = 38;
const IN: &str = " in ";
const WITH: &str = " with ";

/// A function and what it calls, or what calls it, where both have room.
pub(super) fn named(function: &FunctionDifference) -> String {
    let name = shortened(&function.name);
    // Its own name says more than its namespaces.
    let own = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
    if let Some(callee) = function.callee.as_deref().map(|callee| own(&shortened(callee))) {
        return format!("{name}{WITH}{callee}");
    }
    let caller = function.caller.as_deref().map(shortened).filter(|caller| *caller != name);
    let Some(caller) = caller else { return name };
    let fits = [name.clone(), own(&name)].into_iter().find(|name| has_room(name, &caller));
    fits.map_or_else(|| name.clone(), |name| format!("{name}{IN}{caller}"))
}

fn has_room(name: &str, caller: &str) -> bool {
    name.ends_with("(2)") || name.chars().count() + IN.len() + caller.chars().count() <= LONGEST
}

/// A name without arguments, parameters of types and folders; of a long one the end, which says more than its
/// beginning.
fn shortened(name: &str) -> String {
    let name = without_folders(&without_parameters(without_arguments(name)));
    let length = name.chars().count();
    if length <= LONGEST {
        return name;
    }
    format!("…{}", name.chars().skip(length + 1 - LONGEST).collect::<String>())
}

/// A function of C++ without the types of its arguments: `a::b(int) const` is `a::b`. The name may be cut
/// off, and a compiler adds a mark to a copy.
fn without_arguments(name: &str) -> &str {
    let name = name.split(" [clone").next().unwrap_or(name);
    let signature = name.strip_suffix(" const").unwrap_or(name);
    let (mut open, mut last) = (Vec::new(), None);
    for (at, character) in signature.char_indices() {
        match character {
            '(' => open.push(at),
            ')' => last = open.pop(),
            _ => {}
        }
    }
    // What is still open was cut off.
    let at_end = last.filter(|_| signature.ends_with(')') && !signature.ends_with("(2)"));
    let arguments = open.first().copied().or(at_end).filter(|at| *at > 0);
    arguments.map_or(name, |at| &name[..at])
}

/// A function without the parameters of its types: `a::B<c>::d` is `a::B::d`. The name may be cut off.
fn without_parameters(name: &str) -> String {
    let (mut short, mut depth) = (String::new(), 0_usize);
    for (at, character) in name.char_indices() {
        let is_of_type =
            character == '<' && at > 0 && !short.ends_with(['<', ' ']) && !short.ends_with("operator");
        match character {
            '<' if depth > 0 || is_of_type => depth += 1,
            '>' if depth > 0 && !name[..at].ends_with('-') => depth -= 1,
            _ if depth == 0 => short.push(character),
            _ => {}
        }
    }
    short
}

/// A function of a script with its file's name alone: `serve /srv/app/server.js:8:19`, and in Python
/// `serve:/srv/app/server.py`.
fn without_folders(name: &str) -> String {
    let Some(end) = name.rfind('/') else { return name.to_owned() };
    let (before, file) = (&name[..end], &name[end + 1..]);
    match before.find([' ', ':']) {
        Some(at) if before[at + 1..].starts_with('/') || before.len() == at + 1 => {
            format!("{}{file}", &before[..=at]).trim_start().to_owned()
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_arguments_and_no_folders() {
        for (name, short) in [
            ("serve /srv/app/server.js:8:19", "serve server.js:8:19"),
            (" /srv/app/server.js:8:19", "server.js:8:19"),
            ("audit:/srv/server.py", "audit:server.py"),
            ("audit /server.js:1:2", "audit server.js:1:2"),
            ("encoding/json.Marshal", "encoding/json.Marshal"),
            ("main.(*Server).serve", "main.(*Server).serve"),
            ("a::(anonymous namespace)::b(int, c<d>(*)(e)) const", "a::(anonymous namespace)::b"),
            ("write(2)", "write(2)"),
            ("(broken", "(broken"),
            ("core::ptr::drop_in_place<alloc::sync::Arc<a::Handle>>", "core::ptr::drop_in_place"),
            ("<a::B<c> as d::Future>::poll", "<a::B as d::Future>::poll"),
            ("asio::detail::run<asio::any<0, fn(a) -> b>, cut::o", "asio::detail::run"),
            ("ns::operator<", "ns::operator<"),
            ("run(a::B) [clone .lto_priv.0]", "run"),
            ("a::answer(b::c, d::(anonymous namespace)::e, cut", "a::answer"),
            ("()", "()"),
        ] {
            assert_eq!(shortened(name), short);
        }
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        let name = shortened(&format!("{}::serve", "a".repeat(80)));
        assert_eq!(
            (name.chars().count(), name.ends_with("::serve"), name.starts_with('…')),
            (LONGEST, true, true)
        );
    }
}
