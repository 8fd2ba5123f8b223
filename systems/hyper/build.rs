//! The version of hyper, for `describe`.

include!("../../sdk/rust/locked.rs");

fn main() {
    export_versions(&[("hyper", "HYPER_VERSION")]);
}
