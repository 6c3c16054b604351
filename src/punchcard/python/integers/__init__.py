"""Integer functions in Python, compiled to `.asq` text for the von Neumann machine."""
