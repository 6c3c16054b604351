"""Languages for one memory: images, assembly, Brainfuck."""
