"""The command line of Horai: data goes to stdout, messages go to stderr.

Commands are in `cli/commands`: a module NAME_VERB serves `horai NAME VERB`, or is a part of `horai NAME`.
Imports inside functions are allowed in commands that run nodes or workers or open the database: the node and the
database driver take 1 to 2 s to import, rich 0.1 s, and `--help` and shell completion must not wait for them.
"""
