#!/usr/bin/env bash
# Fails if a backend's feature brings another backend's client, or lacks its own.
set -euo pipefail
cd "$(dirname "$0")/.."

# A feature, and the crates that are its client: none for what is no backend. Add a line with each backend.
clients() {
    case $1 in
        none | blocking | macros | metrics) ;;
        etcd) echo "etcd-client tonic prost" ;;
        redis) echo "redis" ;;
        sqlite) echo "sqlx-core sqlx-sqlite libsqlite3-sys" ;;
        zookeeper | zookeeper-tls) echo "zookeeper-client" ;;
        postgres) echo "sqlx-core sqlx-postgres" ;;
        mysql) echo "sqlx-core sqlx-mysql" ;;
        *) echo "check-features.sh: no clients are listed for the feature $1" >&2; exit 1 ;;
    esac
}
features=(none blocking macros metrics etcd redis sqlite zookeeper zookeeper-tls postgres mysql)

# Every feature that the facade has must be in the list above.
for feature in $(awk '/^\[features\]/ { on = 1; next } /^\[/ { on = 0 } on && /^[a-z]/ { print $1 }' Cargo.toml); do
    case $feature in default | full) continue ;; esac
    [[ " ${features[*]} " == *" $feature "* ]] || { echo "check-features.sh: $feature is not checked" >&2; exit 1; }
done

every=$(for feature in "${features[@]}"; do clients "$feature"; done)
for feature in "${features[@]}"; do
    if [ "$feature" = none ]; then args=(--no-default-features); else args=(--no-default-features --features "$feature"); fi
    tree=$(cargo tree -p leasehold -e no-dev --prefix none --format '{p}' "${args[@]}" | cut -d' ' -f1 | sort -u)
    own=$(clients "$feature")
    for client in $every; do
        present=no
        grep -qx "$client" <<<"$tree" && present=yes
        wanted=no
        [[ " $own " == *" $client "* ]] && wanted=yes
        if [ "$present" != "$wanted" ]; then
            echo "check-features.sh: feature $feature: $client is there: $present, wanted: $wanted" >&2
            exit 1
        fi
    done
    echo "feature $feature: ok"
done
