#!/bin/bash
# A hub, and a machine of Alice's that becomes its device with nothing but curl and openssl.
. "$(dirname "$0")/hub.bash"

# The administrator makes a hub and an account, and serves. Port 0 is one that the system chooses.
show "sheaf-hub init --address localhost:0"
show "sheaf-hub account add alice@hub.example --name Alice | tee $here/link"
serve --listen 127.0.0.1:0
echo "It serves $url"
take_link "$(cat "$here/link")"
show "ask $url/v1"

# Alice's machine makes a key, and proves with it that the key is its own.
make_key
made=$(ask "$url/v1/enrollments" -H "$json" -d "$(enrollment laptop)")
echo "$made"
device=$(field device <<<"$made") zone=$(field zone <<<"$made")
begin_session
show "ask $url/v1/account -H \"\$bearer\""
expect "the handle" "$(ask "$url/v1/account" -H "$bearer" | field handle)" alice@hub.example
show "ask $url/v1/devices -H \"\$bearer\""

# The code is used up.
make_key
expect "the status of a used code" "$(status "$url/v1/enrollments" -H "$json" -d "$(enrollment thief)")" 403

# A removed machine is out within a second.
show "sheaf-hub device list alice@hub.example"
show "sheaf-hub device remove alice@hub.example $device"
for _ in $(seq 100); do
  now=$(status "$url/v1/account" -H "$bearer")
  if [ "$now" = 401 ]; then break; fi
  sleep 0.1
done
expect "the status of a removed machine's request" "$now" 401
show "sheaf-hub check"
