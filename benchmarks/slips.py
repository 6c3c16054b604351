"""Every slip of the paper that was found, run: what is printed, the smallest input on which it fails, and both results.

    python -m benchmarks.slips             # the table of docs/slips.md

`SLIPS` has the functions by part of the paper. Each computes its figures anew, but for slips of the wording and of a
listing, which have `run=False`. Inputs are searched from the smallest on where they have an order; the matrices and the
few real numbers are chosen by hand, as small as they can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks import slips_blocks as blocks
from benchmarks import slips_machines as machines
from benchmarks import slips_programs as programs
from benchmarks.slip import Slip

Found = Callable[[], Slip]

SLIPS: Mapping[str, tuple[Found, ...]] = {
    "Primitives": (
        machines.write, machines.word_flag, machines.adder_order, machines.adder_range, machines.bit_flip,
        machines.encodings, machines.tail, machines.first_column, machines.averaging_write),
    "SUBLEQ": (
        machines.subleq_layers, machines.subleq_rows, machines.indicator_of_all_columns, machines.bias_in_every_column,
        machines.end_of_file, machines.least_word, machines.minsky),
    "FLEQ": (
        blocks.layers_of_the_theorem, blocks.one_width, blocks.data_height, blocks.first_mask, blocks.masks_of_step_2,
        blocks.pointers_from_one, blocks.negative_lanes, blocks.field_order, blocks.pointer_field, blocks.heads,
        blocks.one_temperature),
    "Function blocks": (
        blocks.sigmoid_bias, blocks.sigmoid_one_head, blocks.one_head_copy, blocks.product_order, blocks.product_display,
        blocks.product_value, blocks.product_algebra, blocks.product_constant, blocks.product_division,
        blocks.transpose_copy, blocks.transpose_residual, blocks.transpose_of_30, blocks.calculator_steps),
    "Programs": (
        programs.counters, programs.newton_start, programs.newton_lines, programs.power_start, programs.power_scaling,
        programs.power_name, programs.sgd_shapes, programs.sgd_step, programs.sgd_batch, programs.backprop_condition,
        programs.backprop_target, programs.backprop_flag, programs.backprop_resets, programs.backprop_shapes,
        programs.backprop_stale, programs.backprop_operands, programs.backprop_sigmoid, programs.wrapper_line,
        programs.twice_z),
}


def table() -> str:
    """The slips as Markdown, a table for each part."""
    lines = []
    for part, functions in SLIPS.items():
        lines += [f"## {part}", "", "| printed | smallest input that shows it | gives | right |", "|---|---|---|---|"]
        lines += ["| " + " | ".join(cells(function())) + " |" for function in functions] + [""]
    return "\n".join(lines)


def cells(slip: Slip) -> tuple[str, ...]:
    """A row of the table: what was read and not run says so."""
    return slip.printed, slip.input, slip.gives if slip.run else f"{slip.gives} (read)", slip.right


if __name__ == "__main__":
    print(table())
