"""Languages of the RISC-V machine."""
