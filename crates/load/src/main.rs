//! `linerate-load SPEC`: runs the spec, prints JSON lines.

use linerate_load::{OWN_OPTIONS, describe, run};

fn main() {
    linerate_contract::program::run("linerate-load", OWN_OPTIONS, |_| describe(), run);
}
