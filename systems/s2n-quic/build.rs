//! The versions of s2n-quic and rustls, for `describe`.

include!("../../sdk/rust/locked.rs");

fn main() {
    export_versions(&[("s2n-quic", "S2N_QUIC_VERSION"), ("rustls", "RUSTLS_VERSION")]);
}
