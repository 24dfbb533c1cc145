"""Functions in processes of their own: a timeout that really ends the work, and a crash that costs one instance.

    pool      IsolatedFunctions: the children of a worker, who gets one, when another is started
    outlook   when a call that finds no room should come again
    child     one child as the worker sees it: it is given a call, and it answers, dies or is killed
    lifeline  the process behind it, its group, and how it ended
    warden    the process that kills what a killed worker leaves behind
    frames    what worker and child say to each other
    service   the other end: what runs in the child
    reports   what the child says, in moderation

A child serves one call at a time over a socket that nothing else uses. It leads a session, so what its functions start
is in its process group and dies with it; only what makes itself a session of its own escapes.

What happens when a part dies: the child → its attempt fails as `PROCESS_DIED`, its group is killed, the next call finds
another child; the worker by kill -9 → the warden kills every group, and a child that sees its socket end kills its own;
the warden → another is started with the next child.
"""
