"""Words as machine code: every operation against plain Python, on random 64-bit words."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
from llvmlite import binding, ir

from punchcard.engines.lowered.bits.table import BitTable, without_idle_bits
from punchcard.engines.lowered.bits.word import Bit, Input, Word, Words
from punchcard.engines.lowered.codegen.objects import processor
from punchcard.engines.lowered.codegen.words import I64, WordEmitter
from tests.word_values import WHOLE, bit_of, few_value, leaf_words, value_of

WIDTHS = (64, 64, 16, 9, 1)


def random_words(rng: random.Random, words: Words, leaves: list[Word], count: int) -> list[Word]:
    """Words of all operations, made of leaves and of each other."""
    found = list(leaves)
    for _ in range(count):
        a, b, c = (rng.choice(found) for _ in range(3))
        coefficients = (rng.choice((1, -1, 2, 3, -4)), rng.choice((1, -1, 5)))
        inputs = [Input(word, 0 if word.is_flag else rng.choice((0, 1, 3, -2)), word.is_flag or rng.random() < 0.2)
                  for word in (a, b, c)[: rng.randint(1, 3)]]
        table = tuple(rng.randrange(2) for _ in range(1 << len(inputs)))
        found.append(rng.choice((
            lambda a=a: words.shifted(a, rng.choice((1, 5, 63, 64, -1, -7, -64))),
            lambda a=a: words.masked(a, rng.getrandbits(64)),
            lambda a=a, b=b, k=coefficients: words.sum([(k[0], a), (k[1], b)], rng.choice((0, 1, -3, 1 << 40))),
            lambda a=a: words.at_least(a, rng.choice((0, 1, -5, 1 << 20))),
            lambda a=a: words.below(a, rng.choice((1, 4, 16)), rng.randint(1, 12)),
            lambda a=a, b=b: words.equal(a, b),
            lambda t=table, i=inputs: words.logic(t, i),
            lambda a=a, b=b: words.union([words.masked(a, 0xFF), words.masked(b, 0xFF00)]),
            lambda a=a: words.matches(a, mask := rng.getrandbits(6), mask & rng.getrandbits(6)),
            lambda a=a, b=b, c=c: words.chosen(words.masked(c, 1), [a, b]),
            lambda a=a, c=c: words.chosen(words.masked(c, 7), [words.masked(words.shifted(words.masked(a, 255), -s), 255)
                                                              for s in range(8)]),
            lambda: words.constant(rng.getrandbits(rng.choice((1, 20, 63)))),
        ))())
    return found


def test_words_as_code() -> None:
    rng, words = random.Random(1), Words()
    leaves = leaf_words(words, *WIDTHS)
    made = list(dict.fromkeys(random_words(rng, words, leaves, 150)))
    assert {part.op for word in made for part in (word, *word.args)} >= {
        "shift", "mask", "sum", "at least", "below", "equal", "logic", "union", "constant", "matches", "chosen", "shift by"}
    bits = [Bit(word, 0 if word.is_flag else rng.randrange(64)) for word in made]
    functions: list[BitTable] = []
    while len(functions) < 60:
        chosen = tuple(sorted(rng.sample(bits, rng.randint(1, 5))))
        functions.append(without_idle_bits(chosen, [rng.choice((-1, 1)) for _ in range(1 << len(chosen))]))
    run, engine = compiled(leaves, made, bits, [table for table in functions if table.bits])
    for _ in range(20):
        values = {leaf: rng.getrandbits(leaf.width) for leaf in leaves}
        given, out = np.array([values[leaf] for leaf in leaves], dtype=np.uint64), np.zeros(1000, dtype=np.uint64)
        run(given.ctypes.data, out.ctypes.data)
        expected = [value_of(word, values) & WHOLE for word in made] + [bit_of(bit, values) for bit in bits]
        expected += [int(few_value(table, values) > 0) for table in functions if table.bits]
        assert out[: len(expected)].tolist() == expected
    assert engine


def compiled(leaves: list[Word], made: list[Word], bits: list[Bit], functions: list[BitTable]) -> tuple[Any, object]:
    """A function that is given the leaves and writes all values."""
    module, pointer = ir.Module("words"), I64.as_pointer()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, pointer]), "run")
    b = ir.IRBuilder(function.append_basic_block())

    def leaf(word: Word) -> ir.Value:
        value = b.load(b.gep(function.args[0], [ir.Constant(I64, leaves.index(word))]))
        return b.trunc(value, ir.IntType(1)) if word.is_flag else value

    emitter = WordEmitter(b, leaf)
    values = [emitter.word(word) for word in made]
    values += [b.zext(flag, I64) for flag in (*map(emitter.flag, bits), *map(emitter.truth, functions))]
    for number, value in enumerate(values):
        b.store(value, b.gep(function.args[1], [ir.Constant(I64, number)]))
    b.ret_void()
    processor()
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
    engine.finalize_object()
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("run")), engine
