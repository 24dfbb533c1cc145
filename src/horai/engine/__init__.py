"""The stages of the engine, one module each. A stage has its dependencies and one `step`; `loop` runs it and waits."""
