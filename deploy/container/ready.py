"""Ask the node of this container whether it is ready: exit code 0, or 1 with the reason.

It asks /readyz on loopback, with TLS if HORAI_TLS_CERT names a certificate. The certificate is not verified: the
connection does not leave the container, and no secret is sent. Needs only the standard library.
"""

import os
import ssl
import sys
import urllib.error
import urllib.request

TIMEOUT = 4.0


def address() -> str:
    """Return the address of /readyz, by the variables of the node."""
    scheme = "https" if os.environ.get("HORAI_TLS_CERT") else "http"
    return f"{scheme}://127.0.0.1:{os.environ.get('HORAI_PORT') or 8470}/readyz"


def main() -> None:
    """Exit with 1 unless the node answers 200."""
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(address(), timeout=TIMEOUT, context=context):
            return
    except urllib.error.HTTPError as error:
        sys.exit(f"{address()} answered {error.code}: {error.read(2000).decode(errors='replace')}")
    except OSError as error:
        sys.exit(f"{address()} does not answer: {error}")


if __name__ == "__main__":
    main()
