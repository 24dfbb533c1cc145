#!/bin/sh
# Make the secrets of compose.yaml in secrets/ beside this script, or in the directory of the first argument. Keeps what exists.
# Other users cannot enter the directory. Its files are readable, because Compose mounts them with the rights that they have here.
set -eu
directory=${1:-$(dirname "$0")/secrets}
mkdir -p "$directory"
chmod 700 "$directory"
cd "$directory"
umask 022
make() { # name, content
    [ -e "$1" ] || printf '%s\n' "$2" > "$1"
}
make superuser-password "$(openssl rand -hex 24)"
make owner-password "$(openssl rand -hex 24)"
make node-password "$(openssl rand -hex 24)"
make owner-url "postgresql://horai_owner:$(cat owner-password)@database:5432/horai"
make node-url "postgresql://horai_node:$(cat node-password)@database:5432/horai"
make encryption-key "$(openssl rand -base64 32)"
[ -e audit-key ] || openssl genpkey -algorithm ed25519 -out audit-key
[ -e tls-key ] || openssl req -x509 -newkey rsa:2048 -nodes -days 825 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
    -keyout tls-key -out tls-cert 2> /dev/null
chmod 644 ./*
echo "The secrets are in $PWD: keep a copy of encryption-key and audit-key elsewhere."
