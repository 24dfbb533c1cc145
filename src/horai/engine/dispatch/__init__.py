"""The dispatch path: it claims due instances, admits them, and runs their attempts."""
