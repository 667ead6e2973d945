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

# It sends a document. Sent again, as when the answer was lost, it is done once, and the answer is the same.
uuid() { cat /proc/sys/kernel/random/uuid; }
item=$(uuid) version=$(uuid)
send=$(printf '{"groups":[[{"serial":1,"item":"%s","kind":"document","mode":420,"mtime":0,"places":[%s],"version":%s}]]}' \
  "$item" '{"parent":"00000000-0000-0000-0000-000000000000","name":"trip.md"}' \
  "{\"id\":\"$version\",\"cause\":\"save\",\"time\":0,\"contents\":\"$(echo 'See you on Monday.' | base64)\"}")
show "ask $url/v1/sends -H \"\$bearer\" -H \"\$json\" -d \"\$send\" | tee $here/verdict"
expect "the second answer" "$(ask "$url/v1/sends" -H "$bearer" -H "$json" -d "$send")" "$(cat "$here/verdict")"

# Her other machines read what changed, and the contents.
show "ask $url/v1/feed -H \"\$bearer\""
content=$url/v1/items/$item/versions/$version/content
expect "what they read" "$(ask "$content" -H "$bearer")" "See you on Monday."
expect "a part of it" "$(ask "$content" -H "$bearer" -H 'Range: bytes=11-16')" Monday
show "ask $url/v1/events -H \"\$bearer\""

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
