"""The REST API: parse requests strictly, apply the core rules, write in one transaction, and respond."""
