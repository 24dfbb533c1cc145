"""The objective of the service level."""

OBJECTIVE = 0.999
"""The share of starts that are to be on time."""
