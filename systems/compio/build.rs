//! The version of compio, for `describe`.

include!("../../sdk/rust/locked.rs");

fn main() {
    export_versions(&[("compio", "COMPIO_VERSION")]);
}
