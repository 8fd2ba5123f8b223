//! The versions of tokio and tokio_kcp, for `describe`.

include!("../../sdk/rust/locked.rs");

fn main() {
    export_versions(&[("tokio", "TOKIO_VERSION"), ("tokio_kcp", "TOKIO_KCP_VERSION")]);
}
