"""RSA keys, each made once for all tests of a process: to find the primes of one takes a third of a second."""

from functools import cache
from typing import cast

from joserfc.jwk import KeyParameters, RSAKey

_MADE: dict[str, bytes] = {}


@cache
def rsa_key(owner: str, **parameters: str) -> RSAKey:
    """Return the key of this owner, with these parameters (`kid`, `use`, `alg`). Owners have different keys."""
    if owner not in _MADE:
        _MADE[owner] = RSAKey.generate_key(2048).as_pem(private=True)
    return RSAKey.import_key(_MADE[owner], cast("KeyParameters", parameters))
