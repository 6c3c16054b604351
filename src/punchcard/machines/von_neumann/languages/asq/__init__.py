"""SUBLEQ assembly with macros, `.asq`."""
