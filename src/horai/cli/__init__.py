"""The command line: stdout is data, stderr is talk.

    main          the table of commands, and what an error looks like to a user
    lazy          commands are imported when they are called
    up            `horai up`; serving runs the node, logs says where its words go
    migrate, db   the database of a place; database opens it
    jobs          verbs of jobs; creation makes one, triggering runs one and waits
    instances     verbs of instances
    health        how the scheduler is doing
    flags         the flags that several commands share
    environment   what the environment says where a flag does not
    documents     JSON that people give
    client        the REST surface, over urllib
    views, show   what an answer looks like to people
    errors        what can go wrong here

Imports inside functions are for laziness only, and only in `up`, `migrate` and `db`: the node and the database driver
take a second or two to import, rich a tenth of one, and `--help` and shell completion must not wait for them.
"""
