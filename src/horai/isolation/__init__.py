"""Functions in processes of their own: a timeout that really ends the work, and a crash that costs one instance.

    pool           IsolatedFunctions: the children of a worker, their assignment to calls, and the start of new ones
    outlook        the delay after which a call that finds no room tries again
    child          one child as the worker sees it: it gets a call, and it answers, dies or is killed
    lifeline       the process of a child, its process group, and its exit status
    orphan_killer  the process that kills the process groups that a killed worker leaves behind
    frames         the messages between worker and child
    service        the other end: the program of the child
    reports        the messages of the child to its worker, with rate limits

A child serves one call at a time over a socket that nothing else uses. It leads a session, so the processes that its
functions start are in its process group and die with it; only a process that starts its own session escapes.

If a part dies:

- The child: its attempt fails as `PROCESS_DIED`, its group is killed, and the next call gets another child.
- The worker, by kill -9: the orphan killer kills every group, and a child that sees its socket end kills its own.
- The orphan killer: the worker starts another one with the next child.
"""
