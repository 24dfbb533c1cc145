"""The REST surface: parse strictly, ask the core, write in one transaction, answer."""
