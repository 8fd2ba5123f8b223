# Thin: each target is a few commands that work as well by hand. README.md has the two that matter: make run, make test.

CARGO := scripts/cargo
# Where cargo puts what it builds, also where a setting of the user's moved it.
TARGET = $(or $(CARGO_TARGET_DIR),target)
# What cannot be installed is left out of the reports, by name; it stops nothing.
GO_ON = || echo 'linerate: going on with what is there' >&2

.PHONY: run test check bench build setup

# Every suite in its quick form; the tables, and where the report is.
run: build
	$(TARGET)/release/linerate systems --install $(GO_ON)
	$(TARGET)/release/linerate run --quick

# The instrument itself: nanoseconds on the hot path, what it says of a known truth, and every generator against the same
# servers. On a machine that does nothing else. Every suite in full is `linerate run`.
bench: build
	$(CARGO) bench --package linerate-load
	$(TARGET)/release/linerate selftest || echo 'linerate: going on; what is off above is so in the results, too' >&2
	$(TARGET)/release/linerate systems --install $(GO_ON)
	$(TARGET)/release/linerate run generators

build: setup
	$(CARGO) build --release

# The programs first: they install what the tests need, and tests start them. Not by `cargo build`, which chooses other
# features for some libraries and compiles them twice.
test: setup
	$(CARGO) test --workspace --no-run
	$(TARGET)/debug/linerate systems --install $(GO_ON)
	$(CARGO) test --workspace --no-fail-fast

check: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@if command -v shellcheck >/dev/null; then shellcheck -x scripts/setup scripts/cargo scripts/common.sh .ci/run; \
	else echo 'linerate: left out: shellcheck (not installed)' >&2; fi

setup:
	@scripts/setup
