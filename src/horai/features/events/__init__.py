"""Event sources: create, move and cancel instances from a stream.

source     what an adapter has to be able to do; tests/sources/contract.py holds each against it
intake     takes from a source what it has, and tells it what became of each message
nats       a NATS JetStream consumer
jsonl      a file of changes, one a line
"""

from horai.features.feature import Feature

FEATURE = Feature("events", routes=("routes",))
