"""The platform around the processor: which device is where, and the device tree that tells a kernel so.

    0x10000000   uart     a 16550, by the host
    0x11000000   clint    msip, mtimecmp (+0x4000) and mtime (+0xbff8), in the weights
    0x11100000   syscon   0x5555 powers off, 0x7777 reboots, by the host
    0x80000000   memory

mtime counts loops. The device tree says that ten million make a second: a kernel that is interrupted 250 times a second, as
Linux is by default, then has 40,000 loops between two interrupts.
"""

from __future__ import annotations

from punchcard.machines.riscv.system.device_tree import Node, cells, write

UART, CLINT, SYSCON, RAM = 0x10000000, 0x11000000, 0x11100000, 0x80000000
UART_SIZE, CLINT_SIZE, SYSCON_SIZE = 0x100, 0x10000, 0x1000
TIMER_HERTZ = 10_000_000
UART_HERTZ = 1 << 24
POWER_OFF, REBOOT = 0x5555, 0x7777
SOFTWARE_INTERRUPT, TIMER_INTERRUPT = 3, 7
COMMAND_LINE = f"earlycon=uart8250,mmio,{UART:#x},1000000 console=ttyS0"
"""Messages of Linux from the first on, and its console, go to the UART."""
_CPU, _INTERRUPTS, _REGISTERS = 1, 2, 3
"""The numbers by which nodes name others (phandles)."""


def device_tree(memory: int, base: int = RAM, *, multiply: bool = True, command_line: str = COMMAND_LINE) -> bytes:
    """The blob for a memory of so many bytes, of which a kernel may use all."""
    extensions = ["i", *(["m"] if multiply else []), "a", "zicsr", "zifencei"]
    cpu = Node("cpu@0", {
        "phandle": _CPU, "device_type": "cpu", "reg": 0, "status": "okay", "compatible": "riscv",
        "riscv,isa": f"rv32{''.join(name for name in extensions if len(name) == 1)}", "riscv,isa-base": "rv32i",
        "riscv,isa-extensions": extensions, "mmu-type": "riscv,none",
    }, [Node("interrupt-controller", {"#address-cells": 0, "#interrupt-cells": 1, "interrupt-controller": True,
                                      "compatible": "riscv,cpu-intc", "phandle": _INTERRUPTS})])
    core = Node("cpu-map", {}, [Node("cluster0", {}, [Node("core0", {"cpu": _CPU})])])
    return write(Node("", {
        "#address-cells": 2, "#size-cells": 2, "compatible": "riscv-minimal-nommu", "model": "punchcard,looped-transformer",
    }, [
        Node("chosen", {"bootargs": command_line, "stdout-path": f"/soc/uart@{UART:x}"}),
        Node(f"memory@{base:x}", {"device_type": "memory", "reg": [*cells(base), *cells(memory)]}),
        Node("cpus", {"#address-cells": 1, "#size-cells": 0, "timebase-frequency": TIMER_HERTZ}, [cpu, core]),
        Node("soc", {"#address-cells": 2, "#size-cells": 2, "compatible": "simple-bus", "ranges": True}, _devices()),
        _switch("poweroff", POWER_OFF), _switch("reboot", REBOOT),
    ]))


def _switch(name: str, value: int) -> Node:
    """A kernel writes the value to a register of syscon."""
    return Node(name, {"value": value, "offset": 0, "regmap": _REGISTERS, "compatible": f"syscon-{name}"})


def _devices() -> list[Node]:
    return [
        Node(f"uart@{UART:x}", {"clock-frequency": UART_HERTZ, "reg": [*cells(UART), *cells(UART_SIZE)],
                                "compatible": ["ns16550a", "ns16850"]}),
        Node(f"syscon@{SYSCON:x}", {"phandle": _REGISTERS, "reg": [*cells(SYSCON), *cells(SYSCON_SIZE)],
                                    "compatible": "syscon"}),
        Node(f"clint@{CLINT:x}", {
            "interrupts-extended": [_INTERRUPTS, SOFTWARE_INTERRUPT, _INTERRUPTS, TIMER_INTERRUPT],
            "reg": [*cells(CLINT), *cells(CLINT_SIZE)], "compatible": ["sifive,clint0", "riscv,clint0"]}),
    ]
