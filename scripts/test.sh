#!/usr/bin/env bash
# Installs what the tests need where it is missing, then runs all of them.
# Arguments are handed to `cargo test`.
set -euo pipefail
cd "$(dirname "$0")/.."

bash scripts/install.sh

# Without features first: the facade alone must say which feature a store needs.
cargo test -p leasehold "$@"
cargo test --workspace --all-features "$@"

# The suite on a backend outside the workspace, as its own documentation says to run it.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target} cargo test --manifest-path examples/own-backend/Cargo.toml "$@"
