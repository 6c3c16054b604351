"""The FLEQ computer: matrices, function blocks, and pointers that programs change."""
