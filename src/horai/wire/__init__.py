"""The public JSON shapes. Imports nothing else of ours, so that a client can use it alone."""
