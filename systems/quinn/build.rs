//! The versions of quinn and h3, for `describe`.

include!("../../sdk/rust/locked.rs");

fn main() {
    export_versions(&[("quinn", "QUINN_VERSION"), ("h3", "H3_VERSION")]);
}
