#!/bin/sh
# Writes the secrets of an installation into ./secrets, one file each. A file that exists stays as it is.
set -eu

# Only the owner may enter the folder. The files are readable, because each container runs as its own user.
umask 022
mkdir -p secrets
chmod 700 secrets
cd secrets

write() {
  [ -e "$1" ] || printf '%s\n' "$2" >"$1"
}

for name in postgres-password service-password redis-password admin-api-key; do
  write "$name" "$(openssl rand -hex 24)"
done
write data-keys "k1:$(openssl rand -base64 32)"
write fingerprint-keys "f1:$(openssl rand -base64 32)"
write audit-keys "a1:$(openssl rand -base64 32)"

# The stores of docker-compose.yml. For stores of your own, replace what is in these three files.
write database-url "postgresql://notebridge_service:$(cat service-password)@postgres:5432/notebridge"
write database-owner-url "postgresql://notebridge:$(cat postgres-password)@postgres:5432/notebridge"
write redis-url "redis://:$(cat redis-password)@redis:6379"

for name in platform-api-key platform-webhook-secret; do
  [ -s "$name" ] || echo "Write what the platform gave you into secrets/$name."
done
