//! `linerate-load SPEC`: does what the spec says, answers with JSON lines.

fn main() {
    linerate_contract::program::run("linerate-load", |_| linerate_load::describe(), linerate_load::run);
}
