"""What a RISC-V machine with a large memory costs besides its loops: to begin, compile, serve a port, check and fail.

    python benchmarks/large_memory.py [--bits 12,16,20,22]

The machine has the three-layer design, products and float64. Times are of the CPU, each memory in processes of its own:

    cold, begin   building the machine, packing a card and preparing a run: with an empty cache, and with a filled one
    peak          the largest resident size of the second, imports included
    compile       code for every instruction of RV32IM, with an empty cache
    port          what a port costs that reads two words of the card and writes two, beside a run without
    call          the same for a system call, served by the host
    check         a loop that is compared with the interpreter
    fault         the report on an instruction that cannot be executed
    speed         loops a second, of a program that counts: it works on few words
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

BASE = 0x80000000
CALLS, RUNS, CHECKED, LOOPS = 20_000, 5, 2_000, 3_000_000
THREE = "add sub sll slt sltu xor srl sra or and mul mulh mulhsu mulhu div divu rem remu"
PORT, EXIT = 172, 93
"""System calls: getpid, of which nothing but its cost is measured, and the end of a program."""


def used() -> float:
    """CPU seconds of this process."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def best(measure: Callable[[], float]) -> float:
    """The least of several measurements."""
    return min(measure() for _ in range(RUNS))


def assembled(text: str) -> Any:
    """A program at the address where kernels begin."""
    from punchcard.machines.riscv.languages.assembly.assembler import assemble

    program = assemble(f" .globl _start\n_start:\n{text}\n li a7, {EXIT}\n li a0, 0\n ecall\n")
    moved = tuple(replace(segment, address=segment.address + BASE) for segment in program.segments)
    return replace(program, segments=moved, entry=program.entry + BASE, base=BASE, symbols={}, lines={})


def counting(call: str, count: int = CALLS) -> Any:
    """A program that counts down, with or without a system call in its loop."""
    return assembled(f" li s0, {count}\nloop:\n li a7, {PORT}\n {call}\n addi s0, s0, -1\n bnez s0, loop")


def every_instruction() -> Any:
    """A program with every instruction of RV32IM."""
    lines = [f"{op} t0, t1, t2" for op in THREE.split()]
    lines += [f"{op} t0, t1, 5" for op in "addi slti sltiu xori ori andi slli srli srai".split()]
    lines += [f"{op} t0, 0(sp)" for op in "lb lh lw lbu lhu sb sh sw".split()]
    lines += ["lui t0, 5", "auipc t0, 5", "fence", "fence.i", "jal t0, there\nthere:"]
    lines += [f"{op} t1, t2, to_{op}\nto_{op}:" for op in "beq bne blt bge bltu bgeu".split()]
    return assembled("\n".join([" addi sp, sp, -16", *lines, "auipc t0, 0\n jalr t0, t0, 8"]))


def begin(bits: int) -> dict[str, float]:
    """The first things that a run does."""
    import punchcard.engines.lowered  # noqa: F401  # so that it is counted with the imports
    from punchcard.engines import prepare
    from punchcard.machines.riscv.machine import RiscvMachine

    program, started = counting("nop"), used()
    machine = RiscvMachine(memory=1 << bits, base=BASE, multiply=True)
    runner = prepare("lowered", machine.weights, machine.layout, machine.pack(program))
    found = {"begin": used() - started}
    runner.run(1000)
    return {**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def rest(bits: int) -> dict[str, float]:
    """Everything else, in a process that begins with an empty cache."""
    from punchcard.engines import Controls, prepare
    from punchcard.machines.riscv.machine import RiscvMachine

    machine = RiscvMachine(memory=1 << bits, base=BASE, multiply=True)
    program, layout = every_instruction(), machine.layout
    started = used()
    assert machine.run(program).halted
    found = {"compile": used() - started}

    scratchpad, registers = (layout.region(name).start for name in ("scratchpad", "registers"))
    cells: list[Any] = []

    def port(loop: int, card: Any) -> bool:
        if not cells:
            cells.extend(layout.cell(card, *at) for at in (
                ("word", scratchpad), ("memory", registers + 17), ("memory", registers + 10), ("event", scratchpad)))
        word, number, result, event = cells
        word.get()
        result.put(1)
        event.put(0)
        return bool(number.get() != EXIT)

    def spent(text: str, ports: Any) -> float:
        card = machine.pack(counting(text))
        runner = prepare("lowered", machine.weights, layout, card, cache=machine.engine_cache)

        def once() -> float:
            runner.take(card)
            cells.clear()
            started = used()
            ran = runner.run(10 * CALLS, Controls(ports=dict.fromkeys(machine.design.events(machine.sizes), ports)))
            assert ran.reason == "stopped"
            return used() - started

        return best(once)

    def whole(text: str, count: int = CALLS, **options: Any) -> float:
        program = counting(text, count)

        def once() -> float:
            started = used()
            assert machine.run(program, **options).halted
            return used() - started

        return best(once)

    plain = spent("nop", port)
    found["port"] = (spent("ecall", port) - plain) / CALLS
    found["call"] = (whole("ecall") - whole("nop")) / CALLS
    runner = prepare("lowered", machine.weights, layout, machine.pack(assembled("loop:\n addi s0, s0, 1\n bnez s0, loop")),
                     cache=machine.engine_cache)
    runner.run(1000)

    def loops() -> float:
        started = used()
        runner.run(LOOPS)
        return used() - started

    found["speed"] = LOOPS / best(loops)
    found["fault"] = best(lambda: fault_seconds(machine))
    found["check"] = check_seconds(machine)
    return found


def fault_seconds(machine: Any) -> float:
    """What the host does with an instruction that cannot be executed."""
    from punchcard.machines.riscv.host import RiscvHost
    from punchcard.machines.running import Mark

    program = assembled(" lw t0, 0(zero)")
    card = machine.pack(program)
    host = RiscvHost(machine, Mark(card), lambda: -1, lambda byte: None, 10, program)
    started = used()
    host._fault(card)
    return used() - started


def check_seconds(machine: Any) -> float:
    """A loop of a checked run; what the comparison takes to begin and to end is taken off."""
    import punchcard

    def run(count: int) -> float:
        started = used()
        report = punchcard.run(counting("nop", count), machine, check="lockstep")
        assert report.agrees
        return used() - started

    return (run(2 * CHECKED) - run(CHECKED)) / (4 * CHECKED)


def in_process(what: str, bits: int, folder: str) -> dict[str, float]:
    """The figures of a process of its own, with a folder for compiled code."""
    done = subprocess.run([sys.executable, __file__, "--one", what, str(bits)], check=True, capture_output=True,
                          env={**os.environ, "PUNCHCARD_CACHE": folder, "PUNCHCARD_MAX_MEMORY": "16G"})
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=lambda text: tuple(map(int, text.split(","))), default=(12, 16, 20, 22))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps({"begin": begin, "rest": rest}[options.one[0]](int(options.one[1]))))
        return
    titles = ("words", "cold s", "begin s", "peak MB", "compile s", "port µs", "call µs", "check µs", "fault µs",
              "M loops a second")
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    for bits in options.bits:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            cold, warm = in_process("begin", bits, folder), in_process("begin", bits, folder)
            found = in_process("rest", bits, other)
        micro = " | ".join(f"{1e6 * found[name]:.1f}" for name in ("port", "call", "check", "fault"))
        print(f"| 2^{bits} | {cold['begin']:.2f} | {warm['begin']:.2f} | {warm['peak']:.0f} | {found['compile']:.1f} | "
              f"{micro} | {found['speed'] / 1e6:.1f} |", flush=True)


if __name__ == "__main__":
    main()
