"""Event sources: create, move and cancel instances from a stream.

source     the protocol of an adapter; tests/features/events/test_source_contract.py checks each adapter against it
intake     receives messages from a source, applies them, and reports the result of each message to the source
nats       a NATS JetStream consumer
jsonl      a file of changes, one per line
"""

from horai.features.feature import Feature

FEATURE = Feature("events", routes=("routes",))
