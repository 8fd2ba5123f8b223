//! `linerate-natives SPEC`: runs the spec, prints JSON lines. `-` is the spec on stdin.

use linerate_natives::{OWN_OPTIONS, describe, run};

fn main() {
    let options = [linerate_load::OWN_OPTIONS, OWN_OPTIONS].concat();
    linerate_contract::program::run("linerate-natives", &options, |_| describe(), run);
}
