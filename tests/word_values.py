"""The numbers that words are, for all values of their leaves at once, so that tests can compare with plain Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from punchcard.engines.lowered.bits.builder import FULL, Bit, WordBuilder
from punchcard.engines.lowered.bits.table import BitTable
from punchcard.words.renderer import evaluate_arrays
from punchcard.words.word import Word

WHOLE = (1 << FULL) - 1
Numbers = npt.NDArray[Any]
"""Python's integers, one for each setting of the leaves."""
Leaves = Mapping[Word, Numbers]


def value_of(word: Word, leaves: Leaves) -> Numbers:
    """The 64 bits of a word; a flag is 0 or 1."""
    return evaluate_arrays(word, {leaf.data: values.astype(np.uint64) for leaf, values in leaves.items()}).astype(object)


def bit_of(bit: Bit, leaves: Leaves) -> Numbers:
    return value_of(bit.word, leaves) >> bit.place & 1


def table_value(table: BitTable, leaves: Leaves) -> Numbers:
    """The value of a function of bits."""
    places = sum((bit_of(bit, leaves) << j for j, bit in enumerate(table.bits)), start=np.zeros(1, dtype=object))
    return np.array(table.values, dtype=object)[places.astype(np.int64)]


def leaf_words(words: WordBuilder, *widths: int) -> list[Word]:
    return [words.leaf(number, width) for number, width in enumerate(widths)]


def with_leaves(*widths: int) -> tuple[WordBuilder, list[Word], Leaves]:
    """Words, leaves of these widths, and every setting of them."""
    words = WordBuilder()
    leaves = leaf_words(words, *widths)
    return words, leaves, all_values(leaves)


def all_values(leaves: Sequence[Word]) -> Leaves:
    """Every setting of narrow leaves."""
    grids = np.meshgrid(*(np.arange(1 << leaf.width) for leaf in leaves), indexing="ij")
    return {leaf: grid.ravel().astype(object) for leaf, grid in zip(leaves, grids, strict=True)}


def as_machine_code(leaves: Sequence[Word], words: Sequence[Word]) -> Callable[[Sequence[int]], list[int]]:
    """The numbers of words by those of the leaves, computed by code of LLVM."""
    from llvmlite import binding, ir

    from punchcard.engines.lowered.codegen.objects import processor
    from punchcard.words.llvm import llvm_code

    wide = ir.IntType(FULL)
    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), [wide.as_pointer()] * 2), "run")
    b = ir.IRBuilder(function.append_basic_block())

    def load(word: Word) -> ir.Value:
        given = b.load(b.gep(function.args[0], [ir.Constant(wide, leaves.index(word))]))
        return b.trunc(given, ir.IntType(word.size)) if word.size < FULL else given

    code = llvm_code(b, load)
    for number, word in enumerate(words):
        b.store(code(word.extend(FULL)), b.gep(function.args[1], [ir.Constant(wide, number)]))
    b.ret_void()
    processor()
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(function.module)), machine)
    engine.finalize_object()
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("run"))

    def numbers(values: Sequence[int]) -> list[int]:
        given, out = np.array(values, dtype=np.uint64), np.zeros(len(words), dtype=np.uint64)
        run(given.ctypes.data, out.ctypes.data)
        assert engine, "it holds the code"
        found: list[int] = out.tolist()
        return found

    return numbers
