"""Which sizes of every design are exact in every number format, and the certificates that cover them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from docs.draw.chart import Axis, Chart

from benchmarks.report.certificates import Job, built, declared, prove, proven
from benchmarks.report.curves import charts, doublings, pair
from benchmarks.report.section import Figures, Say, Shown
from punchcard.card.formats import FORMATS
from punchcard.errors import PrecisionError, SizeError
from punchcard.machines.registry import built_in
from punchcard.transformer.precision import DTYPES

WORDS = range(2, 64)
COLUMNS = (8, 16, 64, 256, 1024, 16384, 65536)
MEMORIES = (1 << 6, 1 << 12, 1 << 16, 1 << 20)
"""Words of a memory, of machines whose words have one size."""
SHORT, LONG = 16, 1024
"""Columns of the cards that certificates are for."""
LEAST = {"functions": ["add"], "size": 1, "memory": 2, "instructions": 2}
"""The least machine with functions; larger ones take minutes, and docs/proof-fleq.md has them."""
SECONDS = 240
"""The time of CPU that one certificate may take."""


def options(kind: str, columns: int, bits: int | None) -> dict[str, Any]:
    """A machine of about so many columns, by what its kind is built with."""
    known = {option.name for option in built_in().kind(kind).options}
    if "instructions" in known:
        memory = max(1, (columns - 3) * 2 // 5)
        sizes = {"memory": memory, "instructions": max(1, columns - 3 - memory)}
    else:
        sizes = {"memory": columns}
    return sizes if bits is None else {**sizes, "word_bits": bits}


def is_exact(kind: str, design: str, dtype: str, columns: int, bits: int | None) -> bool:
    try:
        built(kind, design=design, precision=dtype, **options(kind, columns, bits))
    except (PrecisionError, SizeError):
        return False
    return True


def largest_words(kind: str, design: str, dtype: str, columns: tuple[int, ...], quick: bool) -> list[list[int | None]]:
    """For each number of columns the largest word that is exact; None: not even the least. It never grows with columns."""
    last: int | None = 11 if quick else min(WORDS.stop - 1, FORMATS[dtype].significand)
    found: list[list[int | None]] = []
    for n in columns:
        if last is not None and not is_exact(kind, design, dtype, n, last):
            last = largest_below(last, partial(is_exact, kind, design, dtype, n))
        found.append([n, last])
    return found


def largest_below(high: int, holds: Callable[[int], bool]) -> int | None:
    """The largest word below `high` for which something holds, by halving."""
    found, low = None, WORDS.start
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            found, low = middle, middle + 1
        else:
            high = middle
    return found


def measured(quick: bool, say: Say) -> Figures:
    words: list[Figures] = []
    memories: list[Figures] = []
    for kind in built_in():
        known = {option.name for option in kind.options}
        for design in kind.designs:
            for dtype in DTYPES if not quick else ("float32",):
                say(f"{kind.name}, {design}, {dtype}")
                if "word_bits" in known:
                    largest = largest_words(kind.name, design, dtype, COLUMNS[:1] if quick else COLUMNS, quick)
                    words.append({"machine": kind.name, "design": design, "dtype": dtype, "words": largest})
                elif "functions" not in known and not quick:  # words of 32 bits; FLEQ's numbers are real
                    exact = [n for n in MEMORIES if is_exact(kind.name, design, dtype, n, None)]
                    memories.append({"machine": kind.name, "design": design, "dtype": dtype,
                                     "words": max(exact, default=None)})
    jobs = wanted(words, memories, quick)
    found: dict[int, Figures] = {}
    for job, answer in ((job, prove(job)) for job in jobs) if quick else proven(jobs, SECONDS):
        say(f"certificate of {job[0]}, {', '.join(map(str, job[1].values()))}: {answer.get('claims') or answer}")
        found[jobs.index(job)] = {"machine": job[0], **job[1], **answer}
    certificates = [found[number] for number in range(len(jobs))]
    return {"words": words, "memories": memories, "certificates": certificates}


def wanted(words: list[Figures], memories: list[Figures], quick: bool) -> list[Job]:
    """The largest exact word of each format on a short card; in float64 words of 8 bits there, and 16 on a long card.

    Of machines without a word size, one in the narrowest format; of machines with functions, the least with add.
    """
    if quick:
        return [("subleq", {"design": "two-layer", "precision": "float32", **options("subleq", 8, 2)})]
    jobs: list[Job] = []
    for line in words:
        name, largest = line["machine"], dict(map(tuple, line["words"])).get(SHORT)
        if largest is None or not declared(name):
            continue
        sizes = [(SHORT, largest), *([(SHORT, 8), (LONG, 16)] if line["dtype"] == "float64" else [])]
        jobs += [(name, {"design": line["design"], "precision": line["dtype"], **options(name, *size)}) for size in sizes]
    narrow = {(line["machine"], line["design"]): line["dtype"] for line in memories if line["words"] is not None}
    jobs += [(name, {"design": design, "precision": dtype, "memory": LONG}) for (name, design), dtype in narrow.items()
             if declared(name)]
    for kind in built_in():
        if "functions" in {option.name for option in kind.options} and declared(kind.name):
            jobs += [(kind.name, {"design": design, "precision": "float64", **LEAST}) for design in kind.designs]
    return jobs


def shown(figures: Figures) -> Shown:
    words, certificates = figures["words"], figures["certificates"]
    done = [c for c in certificates if "claims" in c]
    page = Shown("Exact sizes, and their certificates", (
        f"{len(done)} of {len(certificates)} machines have a proof for every card within {SECONDS} s; a machine that is not "
        "exact is refused when it is built."))
    page.say("""Of machines that compute with bits, the largest word N in bits for which no sum is ever rounded, by
        design, number format and columns n of the card. It is found by building: `PrecisionError` refuses one bit more.
        FLEQ has real numbers and errors instead, and is refused in float16 and bfloat16.""")
    designs = list(dict.fromkeys((line["machine"], line["design"]) for line in words))
    page.picture("sizes", "The largest exact word against the columns of the card, by number format", charts(
        "The largest exact word", "Bits of a word for which no sum is rounded, against the columns of the card.",
        [_chart(machine, design, words) for machine, design in designs]))
    page.table(["machine", "design", "format", "largest exact word"],
               [[line["machine"], line["design"], line["dtype"], _spans(line["words"])] for line in words], numbers=3)
    if figures["memories"]:
        page.say("The RISC-V machine has words of 32 bits. So here the size is its memory:")
        page.table(["machine", "design", "format", "exact with a memory of"],
                   [[line["machine"], line["design"], line["dtype"],
                     "–" if line["words"] is None else f"{line['words']:,} words"]
                    for line in figures["memories"]], numbers=3)
    page.heading("Certificates")
    page.say(f"""A certificate is a [proof](proof.md) from the weights, for every card on which the layout's facts hold:
        every head wins by its gap, one loop is the instruction, no sum is rounded, and the facts hold again. One was
        tried for the largest exact word of each number format on a card of {SHORT} columns, and in float64 for words of
        8 bits there and of 16 bits on a card of {LONG:,} columns. Each had {SECONDS} seconds of CPU. What takes longer
        has no certificate on this page, which says nothing against it: [the proofs of FLEQ](proof-fleq.md) and of
        [other machines](proof.md) have longer runs. Of FLEQ a certificate is about bits, and its real numbers have
        bounds.""")
    page.table(["machine", "design", "format", "N", "memory", "claims", "questions", "s of CPU"],
               [[c["machine"], c["design"], c["precision"], c.get("word_bits", "–"), _room(c), *_outcome(c)]
                for c in certificates], numbers=3)
    return page


def _spans(words: list[list[int | None]]) -> str:
    """Each word with the longest card that was tried on which it is the largest."""
    last = {bits: n for n, bits in words if bits is not None}
    return ", then ".join(f"{bits} bits to {n:,} columns" for bits, n in last.items()) or "–"


def _outcome(certificate: Figures) -> list[object]:
    if "claims" in certificate:
        return [certificate["claims"], certificate["questions"], f"{certificate['seconds']:.0f}"]
    why = certificate["none"].partition(",")[0] if "none" in certificate else f"**failed: {certificate['failed']}**"
    return ["–", "–", why]


def _room(certificate: Figures) -> str:
    code = certificate.get("instructions")
    return f"{certificate['memory']:,}" + (f" + {code:,}" if code else "")


def _chart(machine: str, design: str, words: list[Figures]) -> Chart:
    curves = []
    for number, line in enumerate(line for line in words if (line["machine"], line["design"]) == (machine, design)):
        points = [(n, bits) for n, bits in line["words"] if bits is not None]
        if points:
            curves += pair(number, line["dtype"], points)
    return Chart(f"{machine}, {design}", doublings("columns", COLUMNS, 4),
                 Axis("", 0, 56, range(0, 57, 8)), curves, "bits of a word")
