"""Assembly text for RISC-V, in the words of the GNU assembler."""
