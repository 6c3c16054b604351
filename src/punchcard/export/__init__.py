"""Out into other people's tools: a program as a layer of a network."""
