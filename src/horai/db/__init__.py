"""The database layer: statements in `sql/*.sql`, and one thin typed function for each. Callers own the transactions.

Features keep their own statements in `features/*/*.sql`. No other package reads the statement catalog.
"""
