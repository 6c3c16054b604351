"""The card and the weights of the RISC-V machine."""
