"""The flow, one module per stage. A stage is its dependencies plus one `step`; `loop` owns looping and waiting."""
