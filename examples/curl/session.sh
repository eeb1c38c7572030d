#!/bin/sh
# A session with otpost over curl: send a code, request another too soon, try a wrong code, verify, verify again.
# Exits with status 1 at the first unexpected answer. See the README beside this file.
set -eu

: "${OTPOST_URL:?is not set: the URL of the server, such as http://127.0.0.1:3000}"
: "${OTPOST_APP_ID:?is not set: the appId from the operator}"
: "${OTPOST_API_KEY:?is not set: the API key from the operator}"
: "${OTPOST_BRAND_ID:?is not set: the brandId, such as acme}"
phone=${1:-+1 202 555 0143}

# A text as JSON. It must not contain line breaks.
json() { printf '"%s"' "$(printf %s "$1" | sed 's/[\\"]/\\&/g')"; }

# call PATH FIELDS: the answer with its headers. The body goes through a pipe, so that the key is not in the process list.
call() {
  printf '{"appId":%s,"apiKey":%s,"brandId":%s,%s}' \
    "$(json "$OTPOST_APP_ID")" "$(json "$OTPOST_API_KEY")" "$(json "$OTPOST_BRAND_ID")" "$2" |
    curl --silent --show-error --include --max-time 15 \
      --header 'content-type: application/json' --data-binary @- "$OTPOST_URL$1"
}

# expect STATUS ERROR PATH FIELDS: calls, prints the answer, and exits if it is unexpected. ERROR is - for a success.
expect() {
  answer=$(call "$3" "$4" | tr -d '\r')
  status=$(printf '%s\n' "$answer" | sed -n '1s/^[^ ]* \([0-9]*\).*/\1/p')
  body=$(printf '%s\n' "$answer" | tail -n 1)
  error=$(printf '%s\n' "$body" | sed -n 's/.*"error":"\([a-z_]*\)".*/\1/p')
  wait=$(printf '%s\n' "$answer" | sed -n 's/^[Rr]etry-[Aa]fter: *//p')
  printf '%s\n  %s %s\n' "POST $3" "$status" "$body"
  if [ -n "$wait" ]; then printf '  retry after %s seconds\n' "$wait"; fi
  if [ "$status ${error:--}" != "$1 $2" ]; then
    printf 'expected %s %s\n' "$1" "$2" >&2
    exit 1
  fi
}

recipient="\"phone\":$(json "$phone")"

expect 200 - /otp/send "$recipient"
expect 429 cooldown_active /otp/resend "$recipient"

# If the server has an outbox, read the code there. Otherwise the user types it.
digits=$(printf %s "$phone" | tr -cd 0-9)
if outbox=$(curl --silent --fail --max-time 15 "$OTPOST_URL/outbox/messages?to=$digits&wait=10"); then
  code=$(printf %s "$outbox" | grep -o '[0-9]\{6\} is your' | tail -n 1 | cut -c 1-6)
else
  printf 'The code: '
  read -r code
fi
case $code in 000000) wrong=111111 ;; *) wrong=000000 ;; esac

expect 401 mismatch /otp/verify "$recipient,\"otp\":\"$wrong\""
expect 200 - /otp/verify "$recipient,\"otp\":$(json "$code")"
expect 404 not_found /otp/verify "$recipient,\"otp\":$(json "$code")"
expect 200 - /notify "\"channel\":\"SMS\",\"to\":[$(json "$phone")],\"message\":\"You have just signed in.\""
