# call PATH FIELDS: the JSON answer. Up to three attempts have one Idempotency-Key: one message, one comparison.
# The API key goes through a pipe, so that it is not in the process list.
call() {
  key=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  for attempt in 1 2 3; do
    answer=$(printf 'authorization: Bearer %s' "$OTPOST_API_KEY" |
      curl --silent --show-error --max-time 15 --header @- --header 'content-type: application/json' \
        --header "idempotency-key: $key" --write-out ' %header{retry-after}' \
        --data "{\"brandId\":\"$OTPOST_BRAND_ID\",\"phone\":\"$phone\"$2}" "$OTPOST_URL$1") || answer=' '
    pause=${answer##* }
    answer=${answer% *}
    case $(echo "$answer" | field error) in
    rate_limited | unavailable | idempotency_in_progress) ;;
    *) [ -z "$answer" ] || break ;; # Empty: a time-out, or the connection broke.
    esac
    # A person waits: return the error if the pause would be long.
    [ "$attempt" -lt 3 ] && [ "${pause:=$attempt}" -le 5 ] || break
    sleep "$pause"
  done
  echo "$answer"
}

# field NAME: its value in the answer.
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

phone=${1:-+1 202 555 0143}
sent=$(call /otp/send '')
if [ "$(echo "$sent" | field success)" != true ]; then
  echo "not sent: $sent"
  exit 1
fi
echo "expires in $(echo "$sent" | field expiresIn)"

read -r code
verified=$(call /otp/verify ",\"otp\":\"$(echo "$code" | tr -cd 0-9)\"")
if [ "$(echo "$verified" | field success)" = true ]; then
  echo verified
elif [ "$(echo "$verified" | field error)" = mismatch ]; then
  echo 'wrong code'
else
  echo "not verified: $verified"
fi
