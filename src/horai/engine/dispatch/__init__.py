"""Claim due instances, admit them, and run their attempts."""
