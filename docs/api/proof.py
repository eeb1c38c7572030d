import os
import sys

import jwt

# Keeps the keys for some minutes, and loads them again for an unknown one.
KEYS = jwt.PyJWKClient(os.environ["OTPOST_URL"] + "/.well-known/jwks.json")


def claims_of(proof):
    """Returns the claims of a valid proof. None: refuse it."""
    try:
        claims = jwt.decode(
            proof,
            KEYS.get_signing_key_from_jwt(proof).key,
            algorithms=["EdDSA"],
            issuer=os.environ["OTPOST_ISSUER"],
            audience=os.environ["OTPOST_APP_ID"],
            leeway=30,
            options={"require": ["iss", "aud", "exp", "jti", "to"]},
        )
    except jwt.PyJWTError as error:
        # A key set that cannot be loaded says nothing about the proof.
        if isinstance(error.__cause__ or error.__context__, OSError):
            raise ConnectionError("the key set cannot be loaded") from error
        return None
    # The code of a review number was sent to nobody.
    return None if claims.get("review") else claims


for line in sys.stdin:
    try:
        claims = claims_of(line.strip())
        print("proves " + claims["to"] if claims else "refused")
    except ConnectionError as error:
        print("not checked:", error)
