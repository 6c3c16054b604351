"""What a loop computes, as a graph."""
