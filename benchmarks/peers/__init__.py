"""Other schedulers on the same PostgreSQL in the same sitting, with settings chosen for speed.

    setup       installs them into benchmarks/.peers, which git does not see
    peer        one of them, and the processes it is driven by
    ours        Horai by the same yardstick
    programs/   those processes: they run in the peers' own environment, not in ours

What a program is told: `schema`, `enqueue COUNT`, `schedule RATE SECONDS LEAD`, `send COUNT RATE`, `work COUNT`; PEER_URL names
the database. What `work` tells: a line when it is ready, and one when COUNT calls have been made.
"""
