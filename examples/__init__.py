"""Programs that use Horai, each with one command that runs all of it."""
