"""What the languages of RISC-V can be asked for, and how their files are known: all that is needed before one is read."""

from __future__ import annotations

from punchcard.machines.kind import Option

ELF_MAGIC = b"\x7fELF"
ARCHITECTURES = ("rv32i", "rv32im")
LIBRARIES = ("picolibc", "own")
LEAST_STACK, MOST_STACK = 1024, 1 << 25
C_OPTIONS = (
    Option("cc", "the compiler: gcc, clang or a command", str),
    Option("cflags", "options for the compiler, such as '-O0 -DN=8'", str),
    Option("march", "instructions that the compiler may use", str, choices=ARCHITECTURES),
    Option("libc", "the C library; default: picolibc if it is installed", str, choices=LIBRARIES),
    Option("files", "further files of the program", str, flag="a second FILE", many=True, positional=True),
    Option("stack", "bytes of the stack; default: a quarter of the memory", least=LEAST_STACK, most=MOST_STACK),
)
REFUSED = dict.fromkeys((".cpp", ".cc", ".cxx", ".c++", ".hpp"), "C++ is not supported: there is no library for it. Write "
                        "it in C (.c), or link an executable for rv32i yourself (.elf)")
"""Files that look like programs and are none, by extension."""
