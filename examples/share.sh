#!/bin/bash
# Two people share a folder: a link, an invitation, a file that both edit, and the end of it.
. "$(dirname "$0")/lib.bash"

library=$here/library.sqlite
link() { getfattr --only-values -n user.sheaf.share.url "$1"; }

show "mkdir plans; echo 'Picnic on Sunday.' > plans/picnic.md"
show "sheaf account add bob@example.com --name Bob --library $library"
show "sheaf share plans --with bob@example.com --can edit"

# Bob looks at the link, joins, and has a mount of his own.
url=$(link plans)
show "sheaf inspect $url --library $library --as bob@example.com"
show "sheaf accept $url --library $library --as bob@example.com"
mkdir "$here/bob"
show "sheaf mount $here/bob --library $library --as bob@example.com"
shared=$here/bob/Shared/alice@example.com/plans

# What he writes, Alice reads at once, and the history says whose it is.
show "echo 'I bring the cake.' >> $shared/picnic.md"
expect "what Alice reads" "$(tail -1 plans/picnic.md)" "I bring the cake."
show "sheaf versions plans/picnic.md"
show "getfattr -d $shared/picnic.md"
show "sheaf status $shared/picnic.md"

# Alice lets him only read, and then takes him out: it is gone from his mount that instant.
show "sheaf participant set plans bob@example.com --can view"
show "! echo 'Or not.' >> $shared/picnic.md"
show "sheaf participant remove plans bob@example.com"
expect "what is left in Bob's Shared" "$(ls "$here/bob/Shared")" ""
show "sheaf unmount $here/bob"
