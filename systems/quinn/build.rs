//! The versions of quinn, h3 and rustls, for `describe`.

include!("../../sdk/rust/locked.rs");

fn main() {
    export_versions(&[("quinn", "QUINN_VERSION"), ("h3", "H3_VERSION"), ("rustls", "RUSTLS_VERSION")]);
}
