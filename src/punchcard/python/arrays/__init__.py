"""Functions of arrays, compiled to programs of the FLEQ machine."""
