"""Reports of drills, as `horai drill` writes them."""

from typing import Any


def drill_report(**changed: Any) -> dict[str, Any]:
    """Return the report of a drill that kept every promise."""
    return {
        "kind": "node",
        "cluster": None,
        "move": None,
        "failedAt": "2026-11-03T04:00:12.345+00:00",
        "horai": "0.9.0",
        "machine": "2 cores, Linux",
        "replication": "none",
        "leaseSeconds": 8.0,
        "ratePerSecond": 100,
        "rtoSeconds": 11.19,
        "writesPausedSeconds": 0.4,
        "workDelayedSeconds": 11.19,
        "rpoSeconds": 0.0,
        "acknowledged": 1020,
        "refused": 0,
        "calls": 1030,
        "lost": 0,
        "lostInstances": [],
        "repeatedInFlight": 10,
        "repeatedOutsideFlight": 0,
        "repeatedInstances": [],
        "deadLetters": 5,
        "deadLettersLost": 0,
        "violations": [],
        "promises": [
            {"promise": "recovery time (RTO)", "limit": "15.00 s", "measured": "11.19 s", "kept": True},
            {"promise": "recovery point (RPO)", "limit": "0.00 s", "measured": "0.00 s", "kept": True},
        ],
        "kept": True,
        "steps": [{"second": 0.0, "step": "node one was killed"}, {"second": 11.19, "step": "the last instance ended"}],
        **changed,
    }
