#!/usr/bin/env bash
# Runs the suite on every store, and writes which case ran on which store to docs/conformance.md.
set -euo pipefail
cd "$(dirname "$0")/.."

results=${LEASEHOLD_TEST_MATRIX:-$PWD/target/matrix}
# With "page" as argument only the page is written, from results that are there.
if [ "${1:-}" != page ]; then
    bash scripts/install.sh
    rm -rf "$results"
    export LEASEHOLD_TEST_MATRIX=$results
    for package in lock-core lock-redis lock-etcd lock-zk; do
        cargo test -p "$package" --test conformance
    done
    cargo test -p lock-sql --all-features --test conformance --test conformance_postgres --test conformance_mysql
fi

{
    echo "# Which case ran on which store"
    echo
    echo "Written by \`scripts/matrix.sh\`. A case is \`yes\` where it passed and \`n/a\` where the store or its fixture cannot"
    echo "run it; the reasons are below the table."
    echo
    cat "$results/matrix.md"
} > docs/conformance.md
