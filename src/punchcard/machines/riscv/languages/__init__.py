"""Languages of the RISC-V machine: what its programs are written in, or built into."""
