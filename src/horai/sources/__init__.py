"""Event sources: changes of mind that arrive by themselves, another door into `accept` beside the API.

source     what an adapter has to be able to do; tests/sources/contract.py holds each against it
intake     takes from a source what it has, and tells it what became of each message
nats       a NATS JetStream consumer
jsonl      a file of changes, one a line
"""
