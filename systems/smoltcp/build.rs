//! The versions of both stacks, for `describe`.

include!("../../sdk/rust/locked.rs");

fn main() {
    export_versions(&[("netstack-smoltcp", "NETSTACK_SMOLTCP_VERSION"), ("smoltcp", "SMOLTCP_VERSION")]);
}
