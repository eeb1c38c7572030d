import json
import os
import sys
import urllib.request

from jwcrypto.common import JWException
from jwcrypto.jwk import JWKSet
from jwcrypto.jwt import JWT

with urllib.request.urlopen(os.environ["OTPOST_URL"] + "/.well-known/jwks.json") as answer:
    KEYS = JWKSet.from_json(answer.read())
EXPECTED = {"iss": os.environ["OTPOST_ISSUER"], "aud": os.environ["OTPOST_APP_ID"], "exp": None, "jti": None, "to": None}


def claims_of(proof):
    try:
        token = JWT(algs=["EdDSA"], check_claims=EXPECTED)
        token.leeway = 30
        token.deserialize(proof, KEYS)
        claims = json.loads(token.claims)
    except (JWException, ValueError):
        return None
    return None if "review" in claims else claims


for line in sys.stdin:
    claims = claims_of(line.strip())
    print("proves " + claims["to"] if claims else "refused")
