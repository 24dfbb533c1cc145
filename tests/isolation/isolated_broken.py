"""An application that cannot be imported."""

raise RuntimeError("its configuration is missing")
