"""One module per command; a module NAME_VERB serves `horai NAME VERB`, or is a part of `horai NAME`."""
