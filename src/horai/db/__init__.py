"""The only place that speaks SQL: statements in `sql/*.sql`, one thin typed function for each, callers own transactions."""
