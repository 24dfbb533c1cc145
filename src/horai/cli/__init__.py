"""The command line: stdout is data, stderr is talk.

    main          the table of commands, and what an error looks like to a user
    lazy          commands are imported when they are called
    up, node      a node; company is what `horai up` brings with it
    worker        an application's functions; working runs them, reloading on the newest code
    check         an application before it is deployed; survey finds, findings prints
    references    `module:app` on the command line; apps imports it
    serving       runs any of them until a signal; processes keeps further ones, logs says where their words go
    migrate, db   the database of a place; database opens it
    jobs          verbs of jobs; creation makes one, triggering runs one and waits, coming says when one fires,
                  backfilling runs slots of its past
    backfills     verbs of backfills
    schedules     when a job would fire
    instances     verbs of instances; history is what happened to a key
    entities      verbs of refresh jobs' entities
    dlq           verbs of dead letters
    workflows     verbs of workflows and their runs
    source        event sources; streaming takes from one that lasts, taking from a file and from what was parked
    health        how the scheduler is doing
    flags         the flags that several commands share; time_flags those that say when
    documents     JSON that people give
    client        the REST surface, over urllib
    views, show   what an answer looks like to people
    errors        what can go wrong here

Imports inside functions are for laziness only, and only in what runs nodes and workers or works on the database: the node
and the database driver take a second or two to import, rich a tenth of one, and `--help` and shell completion must not
wait for them.
"""
