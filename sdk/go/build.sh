#!/bin/sh
# build.sh SOURCE OUT NAME: builds the program, with the machine's Go, or with one that is downloaded as a module where that
# is older than 1.21, the first that does so by itself.
set -eu
source=$1 out=$2 name=$3
go=go
case $(go env GOVERSION) in
go1.?|go1.?.*|go1.1?|go1.1?.*|go1.20|go1.20.*)
    toolchain=$(sed -n 's/^toolchain //p' "$source/go.mod")
    module=golang.org/toolchain@v0.0.1-$toolchain.linux-$(go env GOARCH)
    folder=$(cd "$out" && go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    # A module's files have no modes.
    cp -r "$folder" "$out/toolchain"
    chmod -R u+w "$out/toolchain"
    chmod +x "$out"/toolchain/bin/* "$out"/toolchain/pkg/tool/*/*
    go=$out/toolchain/bin/go
    ;;
esac
cd "$source"
"$go" build -trimpath -o "$out/$name" .
rm -rf "$out/toolchain"
