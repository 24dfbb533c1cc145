"""The REST surface, over real HTTP, against a real node and a real PostgreSQL."""
