"""Backpropagation for one point, as FLEQ lines: the paper's program, corrected, for any depth.

With mul(a, b) = a^T b, layer k is stored as the matrix V_k with a row for each input and a column for each unit:

    z_k = V_k^T a_(k-1) + c_k          a_k = activation(z_k), the output z_K stays as it is
    e   = dJ / dz_K                    d_K = rate e: scaled once here, every gradient after it carries the rate
    r   = V_k d_k                      d_(k-1) = activation'(z_(k-1)) * r, entry by entry
    V_k = V_k - a_(k-1) d_k^T          c_k = c_k - d_k

The paper scales each gradient; d_K is linear in all of them, so once is enough. It makes the derivative entry by entry
in a loop over scalars; hadamard does it in one instruction. Errors go back through V_k before V_k is changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from punchcard.learning.programs.network import Network
from punchcard.learning.programs.rules import entry_by_entry

Declarations = dict[str, tuple[int, int]]
"""Variables and their rows and columns."""


def forward(network: Network) -> list[str]:
    """From the point in a0 to the output in z_K."""
    lines = []
    for k, _, units in network.layers():
        lines.append(f"z{k} = mul(V{k}, a{k - 1})")
        if network.has_bias_vector(k):
            lines.append(f"z{k} = add(z{k}, c{k})")
        if k < network.depth:
            lines += _activate(network, k, units)
    return lines


def output_error(network: Network) -> list[str]:
    """From the output and the label to d_K. The line `label` walks through the labels."""
    output, loss = f"z{network.depth}", network.loss
    names = {"o": output, "e": "e", "units": "units"}
    lines = [line.format(**names) for line in loss.before]
    lines.append(f"label: e = sub({'e' if loss.before else output}, Y[0])")
    lines += [line.format(**names) for line in loss.after]
    if loss.entrywise is not None:
        one = network.outputs == 1
        lines += [f"e = {loss.entrywise.name}(e)"] if one else entry_by_entry(
            loss.entrywise.name, "e", "e", network.outputs, "e")
    return [*lines, f"d{network.depth} = mul(rate, e)"]


def backward(network: Network, *, at_once: bool) -> list[str]:
    """From d_K to the changed weights; with `at_once`, to the sums G_k and H_k of the gradients."""
    lines = []
    for k, inputs, units in reversed(list(network.layers())):
        if k > 1:
            lines += [f"U{k} = transpose(V{k})", f"d{k - 1} = mul(U{k}, d{k})"]
        below, row = _row(f"a{k - 1}", inputs)
        if not (row and _made_entry_by_entry(network, k - 1)):
            lines += row
        delta, row = _row(f"d{k}", units)
        lines += [*row, f"g{k} = mul({below}, {delta})"]
        lines.append(f"G{k} = add(G{k}, g{k})" if at_once else f"V{k} = sub(V{k}, g{k})")
        if network.has_bias_vector(k):
            lines.append(f"H{k} = add(H{k}, d{k})" if at_once else f"c{k} = sub(c{k}, d{k})")
        if k > 1:
            lines += _slope(network, k - 1)
            lines.append(f"d{k - 1} = hadamard(s{k - 1}, d{k - 1})")
    return lines


def apply_sums(network: Network) -> list[str]:
    """Change the weights by the sums of the gradients, and clear the sums."""
    lines = []
    for k, _, _ in network.layers():
        pairs = [("V", "G"), ("c", "H")] if network.has_bias_vector(k) else [("V", "G")]
        for weights, total in pairs:
            lines += [f"{weights}{k} = sub({weights}{k}, {total}{k})", f"{total}{k} = sub({total}{k}, {total}{k})"]
    return lines


def variables(network: Network, lines: Sequence[str]) -> Declarations:
    """The variables that lines of this module write, with their shapes."""
    shapes: Declarations = {"e": (network.outputs, 1), "et": (1, network.outputs), "a0": (network.sizes[0], 1),
                            "a0t": (1, network.sizes[0])}
    for k, inputs, units in network.layers():
        shapes |= {f"{name}{k}": (units, 1) for name in ("z", "a", "t", "s", "d", "c", "H")}
        shapes |= {f"{name}{k}t": (1, units) for name in ("z", "a", "d")}
        shapes |= {f"{name}{k}": (inputs, units) for name in ("V", "g", "G")}
        shapes[f"U{k}"] = (units, inputs)
    written = {line.rsplit(": ", 1)[-1].split(" = ")[0].split("[")[0] for line in lines if " = " in line}
    return {name: shape for name, shape in shapes.items() if name in written}


def _activate(network: Network, layer: int, units: int) -> list[str]:
    activation = network.activation
    if activation.entrywise is not None:
        # a_k^T stays for the gradient of the next layer
        return list(entry_by_entry(activation.entrywise.name, f"z{layer}", f"a{layer}", units, f"a{layer}"))
    return [line.format(**_names(layer)) for line in activation.forward]


def _slope(network: Network, layer: int) -> list[str]:
    return [line.format(**_names(layer)) for line in network.activation.backward]


def _names(layer: int) -> dict[str, str]:
    return {name: f"{name}{layer}" for name in ("z", "a", "t", "s", "ones")}


def _row(name: str, entries: int) -> tuple[str, list[str]]:
    """A vector as a row: its name, and the line that makes it. A scalar is both."""
    return (name, []) if entries == 1 else (f"{name}t", [f"{name}t = transpose({name})"])


def _made_entry_by_entry(network: Network, layer: int) -> bool:
    return layer > 0 and network.activation.entrywise is not None
