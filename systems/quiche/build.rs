//! The version of quiche, for `describe`.

include!("../../sdk/rust/locked.rs");

fn main() {
    export_versions(&[("quiche", "QUICHE_VERSION")]);
}
