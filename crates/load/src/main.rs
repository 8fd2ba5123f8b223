//! `linerate-load SPEC`: runs the spec, prints JSON lines. `-` is the spec on stdin.

use linerate_load::{OWN_OPTIONS, describe, run};

fn main() {
    linerate_contract::program::run("linerate-load", OWN_OPTIONS, |_| describe(), run);
}
