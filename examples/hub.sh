#!/bin/bash
# A hub, and a machine of Alice's that becomes its device with nothing but curl and openssl.
set -euo pipefail
binaries=$(dirname "${SHEAF_BIN:-$(command -v sheaf || echo "$(dirname "$0")/../.build/release/sheaf")}")
here=$(mktemp -d "${SHEAF_TEST_FOLDER:-/var/tmp}/sheaf-example-XXXXXX")
export SHEAF_HUB=$here/hub
server=

end() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf --one-file-system "$here"
}
trap end EXIT

# show COMMAND: prints and runs it.
show() {
  echo "\$ $1"
  eval "$1"
}

# expect WHAT ACTUAL EXPECTED
expect() {
  [ "$2" = "$3" ] && return
  echo "$1 is '$2', expected '$3'" >&2
  exit 1
}

# field NAME: a text or a number of the JSON on standard input.
field() { grep -oE "\"$1\":(\"[^\"]*\"|[0-9]+)" | head -1 | sed -E 's/^[^:]*:"?//; s/"$//'; }

# The administrator makes a hub and an account, and serves. Port 0 is one that the system chooses.
show "'$binaries/sheaf-hub' init --address localhost:0"
show "'$binaries/sheaf-hub' account add alice@hub.example --name Alice | tee $here/link"
coproc serving { exec "$binaries/sheaf-hub" serve --listen 127.0.0.1:0; }
server=$serving_PID
read -r _ url <&"${serving[0]}"
echo "It serves $url"
address=${url#https://}

# The link tells the code and the fingerprint of the hub's key. curl takes the hub for the right one by that alone.
link=$(cat "$here/link")
code=${link##*#} fingerprint=${link##*.}
code=${code%.*}
pin=sha256//$(tr -- -_ +/ <<<"$fingerprint")=
ask() { curl --silent --show-error --fail-with-body --insecure --pinnedpubkey "$pin" "$@"; }
show "ask $url/v1"

# Alice's machine makes a key, and signs with it: what for, the address, and the code.
openssl ecparam -name prime256v1 -genkey -noout -out "$here/key.pem"
key=$(openssl ec -in "$here/key.pem" -pubout -outform DER 2>/dev/null | tail -c 65 | base64 -w0)
# sign PURPOSE SECRET
sign() {
  { printf 'sheaf\0%s\0%s\0%s\0' "$1" "$address" "$2" && base64 -d <<<"$key"; } |
    openssl dgst -sha256 -sign "$here/key.pem" | base64 -w0
}
json='Content-Type: application/json'
device=$(ask "$url/v1/enrollments" -H "$json" -d \
  "{\"code\":\"$code\",\"name\":\"laptop\",\"address\":\"$address\",\"key\":\"$key\",\"signature\":\"$(sign enroll "$code")\"}")
echo "$device"
id=$(field device <<<"$device") zone=$(field zone <<<"$device")

# A session: a signature over a nonce that is good once.
nonce=$(ask -X POST "$url/v1/challenges" | field nonce)
token=$(ask "$url/v1/sessions" -H "$json" -d \
  "{\"zone\":\"$zone\",\"device\":\"$id\",\"nonce\":\"$nonce\",\"address\":\"$address\",\"signature\":\"$(sign session "$nonce")\"}" |
  field token)
bearer="Authorization: Bearer $token"
show "ask $url/v1/account -H \"\$bearer\""
expect "the handle" "$(ask "$url/v1/account" -H "$bearer" | field handle)" alice@hub.example
show "ask $url/v1/devices -H \"\$bearer\""

# The code is used up, and a removed machine is out.
expect "the status of a code that is used" "$(curl -sk -o /dev/null -w '%{http_code}' "$url/v1/enrollments" -H "$json" -d \
  "{\"code\":\"$code\",\"name\":\"thief\",\"address\":\"$address\",\"key\":\"$key\",\"signature\":\"$(sign session "$code")\"}")" 400
show "'$binaries/sheaf-hub' device list alice@hub.example"
show "'$binaries/sheaf-hub' device remove alice@hub.example $id"
for _ in $(seq 100); do
  status=$(curl -sk -o /dev/null -w '%{http_code}' "$url/v1/account" -H "$bearer")
  if [ "$status" = 401 ]; then break; fi
  sleep 0.1
done
expect "the status of a removed machine's request" "$status" 401
show "'$binaries/sheaf-hub' check"
