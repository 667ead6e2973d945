# Sourced by the example and by what checks the interface: a hub of their own, gone when they end, and a machine that
# is one of its devices with nothing but curl and openssl.

set -euo pipefail
binaries=$(dirname "${SHEAF_BIN:-$(command -v sheaf || echo "$(dirname "${BASH_SOURCE[0]}")/../.build/release/sheaf")}")
here=$(mktemp -d "${SHEAF_TEST_FOLDER:-/var/tmp}/sheaf-hub-XXXXXX")
export SHEAF_HUB=$here/hub
server=

sheaf-hub() { "$binaries/sheaf-hub" "$@"; }

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

# serve OPTION...: serves in the background; `url` is where, `address` what machines sign.
serve() {
  mkfifo "$here/serving"
  "$binaries/sheaf-hub" serve "$@" >"$here/serving" &
  server=$!
  read -r _ url <"$here/serving"
  address=${url#*://}
}

# take_link LINK: its code, and the fingerprint of the hub's key. curl takes the hub for the right one by that alone.
take_link() {
  code=${1##*/enrol/}
  trust=()
  if [[ $code = *#* ]]; then
    trust=(--insecure --pinnedpubkey "sha256//$(tr -- -_ +/ <<<"${code##*#}")=")
    code=${code%%#*}
  fi
}

ask() { curl --silent --show-error --fail-with-body "${trust[@]}" "$@"; }
# status CURL-ARGUMENT...: the status of the answer alone.
status() { curl --silent --output /dev/null --write-out '%{http_code}' "${trust[@]}" "$@"; }
json='Content-Type: application/json'

# make_key: the machine's key.
make_key() {
  openssl ecparam -name prime256v1 -genkey -noout -out "$here/key.pem"
  key=$(openssl ec -in "$here/key.pem" -pubout -outform DER 2>/dev/null | tail -c 65 | base64 -w0)
}

# sign PURPOSE TEXT: with that key: what for, the address, and the code or nonce.
sign() {
  { printf 'sheaf\0%s\0%s\0%s\0' "$1" "$address" "$2" && base64 -d <<<"$key"; } |
    openssl dgst -sha256 -sign "$here/key.pem" | base64 -w0
}

# enrollment NAME: the JSON that spends the code.
enrollment() {
  printf '{"code":"%s","name":"%s","address":"%s","key":"%s","signature":"%s"}' \
    "$code" "$1" "$address" "$key" "$(sign enroll "$code")"
}

# begin_session: a signature over a nonce that is good once; `bearer` is the header for what follows.
begin_session() {
  local nonce token
  nonce=$(ask -X POST "$url/v1/challenges" | field nonce)
  token=$(ask "$url/v1/sessions" -H "$json" -d "$(
    printf '{"zone":"%s","device":"%s","nonce":"%s","address":"%s","signature":"%s"}' \
      "$zone" "$device" "$nonce" "$address" "$(sign session "$nonce")"
  )" | field token)
  bearer="Authorization: Bearer $token"
}
