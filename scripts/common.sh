# shellcheck shell=sh
# Shared functions. Sourced with the repository's root as the current folder.

say() { printf 'linerate: %s\n' "$*" >&2; }

have() { command -v "$1" >/dev/null 2>&1; }

# The oldest Rust that builds the workspace (rust-version in Cargo.toml).
rust_needed() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml; }

# Is version $1 at least version $2?
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# Puts a cargo that is new enough first on PATH, or fails. rustup's folder may not be on PATH yet. Its default toolchain
# may be older than its stable one, which is then used for this project only.
find_cargo() {
    PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    export PATH
    if cargo_is_new_enough; then return 0; fi
    # Checked in the list, because rustup would silently install a missing toolchain.
    rustup toolchain list 2>/dev/null | grep -q '^stable' || return 1
    RUSTUP_TOOLCHAIN=stable
    export RUSTUP_TOOLCHAIN
    cargo_is_new_enough
}

cargo_is_new_enough() {
    version=$(RUSTUP_AUTO_INSTALL=0 cargo --version 2>/dev/null | cut -d' ' -f2)
    [ -n "$version" ] && at_least "$version" "$(rust_needed)"
}

# Runs a command as root: directly, with sudo without a password, or, at a terminal, with sudo and a password. Fails if
# none is possible.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"
    elif have sudo && sudo -n true 2>/dev/null; then sudo -n "$@"
    elif have sudo && [ -t 0 ]; then sudo "$@"
    else return 1
    fi
}

# Installs Debian packages; their output goes to a file. Fails with a message where this is not possible.
apt_install() {
    if ! have apt-get; then
        say "skipped: $* (no apt-get: not a Debian-based system)"
        return 1
    fi
    say "installing Debian packages: $*"
    install_log=${XDG_CACHE_HOME:-$HOME/.cache}/linerate/install.log
    mkdir -p "${install_log%/*}"
    # A new machine has no package lists yet, and may be running its first upgrade.
    as_root env DEBIAN_FRONTEND=noninteractive sh -c '
        apt-get update -qq || true
        exec apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"' sh "$@" \
        > "$install_log" 2>&1 && return 0
    tail -n 5 "$install_log" >&2
    say "skipped: $* (not root and no sudo, or apt-get failed: $install_log)"
    return 1
}
