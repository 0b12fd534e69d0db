#!/usr/bin/env bash
# Installs what the tests need where it is missing, then runs all of them.
# Arguments are handed to `cargo test`.
set -euo pipefail
cd "$(dirname "$0")/.."

# On Debian and Ubuntu; elsewhere it says what is missing and goes on, and the build tells the rest.
need() {
    local command=$1 package=$2
    command -v "$command" >/dev/null 2>&1 && return
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "test.sh: $command is missing and there is no apt-get to install $package with" >&2
        return
    fi
    missing+=("$package")
}

missing=()
need cc build-essential
need protoc protobuf-compiler
need etcd etcd-server
# The .proto files of Google that protoc reads are a package of their own.
if command -v dpkg >/dev/null 2>&1 && ! dpkg -s libprotobuf-dev >/dev/null 2>&1; then
    missing+=(libprotobuf-dev)
fi
if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

# Without features first: the facade alone must say which feature a store needs.
cargo test -p leasehold "$@"
cargo test --workspace --all-features "$@"
