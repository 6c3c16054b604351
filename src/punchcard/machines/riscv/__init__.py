"""RISC-V: RV32I and the M extension, the instructions that stock compilers give."""
