# Sourced by the examples: a library and a mount of their own, gone when they end.

set -euo pipefail
sheaf=${SHEAF_BIN:-$(command -v sheaf || echo "$(dirname "${BASH_SOURCE[0]}")/../.build/release/sheaf")}
here=$(mktemp -d "${SHEAF_TEST_FOLDER:-/var/tmp}/sheaf-example-XXXXXX")
mkdir "$here/mnt"

sheaf() { "$sheaf" "$@"; }

end() {
  cd /
  if mountpoint -q "$here/mnt"; then "$sheaf" unmount "$here/mnt" || umount --lazy "$here/mnt"; fi
  rm -rf --one-file-system "$here"
}
trap end EXIT

mount_library() { sheaf mount "$here/mnt" --library "$here/library.sqlite" --as alice@example.com; }

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

mount_library
cd "$here/mnt/Documents"
