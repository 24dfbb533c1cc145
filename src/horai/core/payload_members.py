"""Members of payloads that Horai itself adds."""

PARENTS = "parents"
"""The member of the payload of a workflow node that holds the results of its parents by node name."""
ASSETS = "assets"
"""The member of the payload of an instance that assets have started: their updates by name."""
ADDED = (PARENTS, ASSETS)
"""Members that a function gets without a parameter for them."""
