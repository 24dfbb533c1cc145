"""The public JSON models. The package imports nothing else of Horai, so that a client can use it alone."""
