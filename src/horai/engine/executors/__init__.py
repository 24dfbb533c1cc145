"""Executors: each turns a `Call` into an `Outcome` for one attempt and never touches the database."""
