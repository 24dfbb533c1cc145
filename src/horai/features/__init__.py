"""Capabilities on top of the kernel, one folder each. `FEATURES` lists them."""
