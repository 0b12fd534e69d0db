#!/usr/bin/env bash
# Installs what the build and the tests need where it is missing: a C compiler, protoc, and the stores' servers.
set -euo pipefail

# On Debian and Ubuntu; elsewhere it says what is missing and goes on, and the build tells the rest.
need() {
    local command=$1 package=$2
    command -v "$command" >/dev/null 2>&1 && return
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "install.sh: $command is missing and there is no apt-get to install $package with" >&2
        return
    fi
    missing+=("$package")
}

# The same for what has no command of its own.
need_file() {
    local file=$1 package=$2
    [ -e "$file" ] && return
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "install.sh: $file is missing and there is no apt-get to install $package with" >&2
        return
    fi
    missing+=("$package")
}

missing=()
need cc build-essential
need protoc protobuf-compiler
# The .proto files of Google that protoc reads are a package of their own.
need_file /usr/include/google/protobuf/any.proto libprotobuf-dev
need etcd etcd-server
need redis-server redis-server
need openssl openssl
need java default-jre-headless
need_file /usr/share/java/zookeeper.jar libzookeeper-java
# It speaks TLS by Netty.
need_file /usr/share/java/netty-handler.jar libnetty-java
# Their programs alone are used, on data and ports of the tests' own. Debian keeps PostgreSQL's out of the path.
if ! command -v initdb >/dev/null 2>&1 && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    need initdb postgresql
fi
need mariadbd mariadb-server
need pgbouncer pgbouncer
# Some start servers with a clock of their own.
need faketime faketime
if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo)
    fi
    # Packages of servers start them, on their standard ports, unless this says no. An administrator's own word stays.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod +x "$policy"
        trap '"${as_root[@]}" rm -f "$policy"' EXIT
    fi
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi
