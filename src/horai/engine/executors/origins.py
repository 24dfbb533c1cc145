"""The host of a URL, as bulkheads, circuit breakers and retry budgets tell hosts apart."""

from functools import lru_cache

from yarl import URL


@lru_cache(maxsize=10_000)
def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL in lower case, without user or password; an empty text if it has none."""
    try:
        return str(URL(url, encoded=True).origin()).lower()
    except ValueError:
        return ""
