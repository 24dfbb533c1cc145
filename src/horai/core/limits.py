"""Limits that several parts share: sizes of what is stored, sent and listed."""

SHARDS = 32
MAX_RETRY_LIMIT = 1000
MAX_LOST_LIMIT = 1000
KEY_LIMIT = 512
PAYLOAD_LIMIT = 1024 * 1024
RESULT_LIMIT = 64 * 1024
MESSAGE_LIMIT = 2_000
BODY_LIMIT = 2 * 1024 * 1024
BATCH_BODY_LIMIT = 32 * 1024 * 1024
PAGE_LIMIT = 500
PAGE_DEFAULT = 50
PAGE_BYTES = 4 * 1024 * 1024
LISTED_PAYLOAD_BYTES = 4 * 1024
NESTING_LIMIT = 64
KEPT_KEYS = 10_000_000
"""Idempotency keys kept per tenant; beyond this, a request with a new key gets 429."""
KEPT_ANSWER_BYTES = 4 * 1024**3
"""Compressed bytes of responses kept per tenant for repeated requests."""
