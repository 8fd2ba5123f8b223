//! The versions of the libraries, for `describe`.

include!("../../sdk/rust/locked.rs");

fn main() {
    export_versions(&[
        ("tokio-tungstenite", "TOKIO_TUNGSTENITE_VERSION"),
        ("fastwebsockets", "FASTWEBSOCKETS_VERSION"),
        ("rustls", "RUSTLS_VERSION"),
    ]);
}
