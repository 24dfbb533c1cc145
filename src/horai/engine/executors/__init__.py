"""How one attempt is made: an executor turns a `Call` into an `Outcome` and never touches the database."""
