//! The stack's version, for `describe`.

include!("../../sdk/rust/locked.rs");

fn main() {
    export_versions(&[("ipstack", "STACK_VERSION")]);
}
