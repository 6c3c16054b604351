"""Plain interpreters, with no tensor in them: what the transformers are judged by."""
