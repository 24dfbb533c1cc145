"""Numbers in the texts of requests: ids and versions."""


def number_in(text: str, most: int = 18) -> int | None:
    """Return the number that a text is; None if it has other characters than digits, or more than `most` of them."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= most else None
