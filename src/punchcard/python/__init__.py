"""Python functions that run on a transformer. `program` is the decorator."""
