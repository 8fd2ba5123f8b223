//! Dynamic loaders: a process may go on without a library that its loader did not find.

/// Errors of the loaders of glibc and musl.
const ERRORS: [&str; 7] = [
    "cannot be preloaded",
    "error while loading shared libraries:",
    "symbol lookup error:",
    "relocation error:",
    "Inconsistency detected by ld.so:",
    "Error loading shared library ",
    "Error relocating ",
];

/// True for a line of a loader that did not find what a program needs.
pub(super) fn is_error(line: &str) -> bool {
    // A library of the machine's, which all programs miss.
    if line.contains("from /etc/ld.so.preload") {
        return false;
    }
    let lacks_version = line.contains(": version `") && line.contains("' not found (required by ");
    lacks_version || ERRORS.iter().any(|text| line.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_loaders_are_known_and_others_are_not() {
        for line in [
            "ERROR: ld.so: object '/a/b.so' from LD_PRELOAD cannot be preloaded (cannot open): ignored.",
            "./a: error while loading shared libraries: b.so: cannot open shared object file: No such file",
            "./a: symbol lookup error: ./b.so: undefined symbol: c",
            "./a: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.99' not found (required by ./a)",
            "Error loading shared library b.so: No such file or directory (needed by ./a)",
            "Error relocating ./a: c: symbol not found",
        ] {
            assert!(is_error(line), "{line}");
        }
        let of_all = "ERROR: ld.so: object 'b.so' from /etc/ld.so.preload cannot be preloaded: ignored.";
        for line in ["", of_all, "[WARNING] 'bind': version 2 not found", "loading b.so", "listening on :80"]
        {
            assert!(!is_error(line), "{line}");
        }
    }
}
