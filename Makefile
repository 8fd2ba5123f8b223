# Each target is a few commands that also work by hand. The main ones are make run and make test (README.md).

CARGO := scripts/cargo
# Cargo's output folder, which the user may have moved.
TARGET = $(or $(CARGO_TARGET_DIR),target)
# Systems that cannot be installed are rows with a reason, not errors.
GO_ON = || echo 'linerate: continuing without them' >&2

# A suite, or all.
SUITE := all

# No test starts these: boringtun, oha, ghz, shb, tquic, quiche, k6, asio-loops and nginx-current are long builds, the others are downloads.
TESTED = $(filter-out boringtun wireguard-go oha ghz shb s2n-quic asio-loops nginx-current envoy caddy traefik netty tquic quiche k6 README.md Cargo.toml Cargo.lock,$(notdir $(wildcard systems/*)))

# Tests of HTTP/2 servers, from the registry of Go modules.
H2SPEC := github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible

.PHONY: run test check bench fuzz build setup site reports dist deb

# Every suite in its quick form, or one: make run SUITE=proxy. Each suite prints its tables when it is done; its systems are
# installed and built just before it.
run: build
	$(TARGET)/release/linerate run $(SUITE) --quick --install

# linerate itself: nanoseconds on the hot path, the selftest, and other generators against the same servers. Needs a quiet
# machine. All generators, with narrower intervals: linerate run generators.
bench: build
	$(CARGO) bench --package linerate-load
	$(TARGET)/release/linerate selftest || echo 'linerate: continuing; the results are affected in the same way' >&2
	$(TARGET)/release/linerate run generators --quick --install

# What peers send: every fuzz target for a minute, or make fuzz INPUT=kcp SECONDS=600.
fuzz: setup
	scripts/fuzz $(or $(INPUT),all) $(SECONDS)

# The published runs as a static site: site/index.html. Its page of documents is in docs/, too.
site: build
	$(TARGET)/release/linerate site results --out site
	@! test -e site/published.md || cp site/published.md docs/published.md

# The reports of all published runs, the table of README.md and the page of documents, by the current code.
reports: build
	for run in results/*/run.json; do $(TARGET)/release/linerate report "$$(dirname "$$run")" --out "$$(dirname "$$run")" >/dev/null || exit 1; done
	scripts/readme-table
	$(MAKE) site

build: setup
	$(CARGO) build --release

# The programs come first: they install what the tests need, and tests start them. Not with `cargo build`: it selects
# other features for some libraries and compiles them twice. Most tests wait, so two run on each CPU; one that failed runs
# again by itself. A check of the fuzz targets links nothing, so libFuzzer is not compiled for it.
test: setup
	@scripts/browser
	@. scripts/common.sh; have redis-check-rdb || apt_install redis-tools || true
	@. scripts/common.sh; have gtlsserver || apt_install ngtcp2-client ngtcp2-server || true
	@test -e $(TARGET)/tools/h2spec || GOBIN=$(abspath $(TARGET))/tools go install $(H2SPEC) 2>/dev/null || true
	$(CARGO) test --workspace --no-run
	CUSTOM_LIBFUZZER_PATH=/nowhere/libfuzzer.a RUSTFLAGS='--cfg fuzzing' $(CARGO) check --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz/check
	$(TARGET)/debug/linerate systems --install $(TESTED) $(GO_ON)
	TESTS_AGAIN=1 RUST_TEST_THREADS=$$((2 * $$(nproc))) $(CARGO) test --workspace --no-fail-fast

check: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@if command -v shellcheck >/dev/null; then shellcheck -x scripts/setup scripts/browser scripts/cargo scripts/test-runner scripts/fuzz scripts/common.sh .ci/run; \
	else echo 'linerate: skipped: shellcheck (not installed)' >&2; fi

# dist/linerate.tar.gz: static programs and all data, for machines without Rust. Unpack it and run bin/linerate.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
STATIC = $(TARGET)/static/$(HOST)/release
dist: setup
	RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) build --release --target $(HOST) --target-dir $(TARGET)/static
	rm -rf dist && mkdir -p dist/linerate/bin
	cp $(STATIC)/linerate $(STATIC)/linerate-load $(STATIC)/linerate-natives dist/linerate/bin
	git archive HEAD suites systems sdk crates/contract docs Cargo.toml Cargo.lock README.md CHANGELOG.md LICENSE \
	    | tar -x -C dist/linerate
	tar -czf dist/linerate.tar.gz -C dist linerate

# dist/*.deb: static programs, data, man pages and completions.
deb: dist
	$(STATIC)/linerate man dist/man
	find dist/man -name '*.1' -exec gzip -9nf {} +
	$(STATIC)/linerate completions bash > dist/linerate.bash
	command -v cargo-deb >/dev/null || $(CARGO) install cargo-deb
	CARGO_TARGET_DIR=dist/target cargo deb --package linerate --no-build --no-strip --output dist/

setup:
	@scripts/setup
