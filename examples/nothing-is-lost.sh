#!/bin/bash
# A document is deleted and comes back; the process is killed and nothing that was closed is lost.
. "$(dirname "$0")/lib.bash"

show "mkdir plans"
show "echo 'Buy a boat.' > plans/2027.txt"
show "rm -r plans"
show "sheaf deleted ."
show "sheaf recover plans"
show "cat plans/2027.txt"
expect "what came back" "$(cat plans/2027.txt)" "Buy a boat."

echo "And a mast." >> plans/2027.txt
cd /
show "kill -9 $(cat "$here/library.sqlite-lock")"
while stat "$here/mnt/Documents" >/dev/null 2>&1; do :; done
show "mount_library"
show "cat $here/mnt/Documents/plans/2027.txt"
expect "what the killed process kept" "$(tail -1 "$here/mnt/Documents/plans/2027.txt")" "And a mast."
show "sheaf backup $here/copy.sqlite --library $here/library.sqlite"
show "sheaf check --library $here/copy.sqlite"
