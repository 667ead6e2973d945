#!/bin/bash
# A letter is written, changed, looked at as it was, and brought back.
. "$(dirname "$0")/lib.bash"

show "echo 'Dear Bob, see you on Monday.' > letter.txt"
show "echo 'I bring cake.' >> letter.txt"
show "sed -i s/Monday/Tuesday/ letter.txt"
show "sheaf versions letter.txt"
show "sheaf diff letter.txt --from 1 --to 3"
show "sheaf label letter.txt sent --version 3"
show "ls .versions/letter.txt"
show "cp .versions/letter.txt/0002~* as-it-was.txt"
show "sheaf restore letter.txt --version 1"
show "getfattr --only-values -n user.sheaf.version letter.txt; echo"

expect "the letter" "$(cat letter.txt)" "Dear Bob, see you on Monday."
expect "the copy of version 2" "$(tail -1 as-it-was.txt)" "I bring cake."
expect "the number of versions" "$(sheaf versions letter.txt --json | grep -o '"number"' | wc -l)" 4
