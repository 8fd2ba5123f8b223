# shellcheck shell=sh
# What the scripts share. Sourced, with the repository's root as the current folder.

say() { printf 'linerate: %s\n' "$*" >&2; }

have() { command -v "$1" >/dev/null 2>&1; }

# The oldest Rust that builds the workspace, from the one place that says so.
rust_needed() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml; }

# Is version $1 at least version $2?
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# Leaves a cargo that is new enough first on PATH, or fails. rustup's own folder may not be on PATH yet, and its
# default toolchain may be older than its stable one, which is then used for this project alone.
find_cargo() {
    PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    export PATH
    if cargo_is_new_enough; then return 0; fi
    # Asked of the list, because rustup would install a toolchain that is named and not there, and say nothing.
    rustup toolchain list 2>/dev/null | grep -q '^stable' || return 1
    RUSTUP_TOOLCHAIN=stable
    export RUSTUP_TOOLCHAIN
    cargo_is_new_enough
}

cargo_is_new_enough() {
    version=$(RUSTUP_AUTO_INSTALL=0 cargo --version 2>/dev/null | cut -d' ' -f2)
    [ -n "$version" ] && at_least "$version" "$(rust_needed)"
}

# Runs a command as root: directly, by sudo without asking, or, at a terminal, by sudo that asks. Fails if none is possible.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"
    elif have sudo && sudo -n true 2>/dev/null; then sudo -n "$@"
    elif have sudo && [ -t 0 ]; then sudo "$@"
    else return 1
    fi
}

# Installs Debian packages. Fails, and says why, where that is not possible.
apt_install() {
    if ! have apt-get; then
        say "left out: $* (this is not Debian or one of its kin: there is no apt-get)"
        return 1
    fi
    say "installing Debian packages: $*"
    # A fresh machine has no package lists yet, and may be busy with its first upgrade.
    as_root env DEBIAN_FRONTEND=noninteractive sh -c '
        apt-get update -qq || true
        exec apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >&2' sh "$@" && return 0
    say "left out: $* (not root, and sudo is not there or not allowed; or apt-get failed, see above)"
    return 1
}
