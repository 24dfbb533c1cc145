"""The pure core: values and decisions. No I/O, no clock, no logging; `now` and `dice` are arguments."""
