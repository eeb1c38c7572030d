import http.client
import json
import os
import sys
import time
import urllib.parse
import uuid

URL = urllib.parse.urlsplit(os.environ["OTPOST_URL"])
Connection = http.client.HTTPSConnection if URL.scheme == "https" else http.client.HTTPConnection
TEMPORARY = {"rate_limited", "unavailable", "idempotency_in_progress"}


def call(path, **fields):
    """Returns the JSON answer of otpost, also for errors. Makes up to three attempts."""
    body = json.dumps({"brandId": os.environ["OTPOST_BRAND_ID"], **fields})
    headers = {
        "authorization": "Bearer " + os.environ["OTPOST_API_KEY"],
        "content-type": "application/json",
        # The same in each attempt: the message is sent once, and the code is compared once.
        "idempotency-key": str(uuid.uuid4()),
    }
    for attempt in (1, 2, 3):
        connection = Connection(URL.netloc, timeout=15)
        try:
            connection.request("POST", URL.path + path, body, headers)
            response = connection.getresponse()
            answer = json.load(response)
            pause = int(response.headers.get("retry-after", attempt))
            # A person waits: return the error if the pause would be long.
            if attempt == 3 or answer.get("error") not in TEMPORARY or pause > 5:
                return answer
        except (OSError, http.client.HTTPException):
            # No answer: a time-out, or the connection broke.
            if attempt == 3:
                raise
            pause = attempt
        finally:
            connection.close()
        time.sleep(pause)


PHONE = sys.argv[1] if len(sys.argv) > 1 else "+1 202 555 0143"
sent = call("/otp/send", phone=PHONE)
if not sent["success"]:
    raise SystemExit("not sent: " + json.dumps(sent))
print("expires in", sent["expiresIn"], flush=True)

verified = call("/otp/verify", phone=PHONE, otp=input().strip())
if verified["success"]:
    print("verified")
elif verified["error"] == "mismatch":
    print("wrong code")
else:
    print("not verified:", json.dumps(verified))
