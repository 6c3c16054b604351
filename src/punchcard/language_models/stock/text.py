"""What a machine brings to have stock checkpoints: the texts of its programs, and the decoder that continues with them.

SUBLEQ's is in `language.py`, for long words in `byte_language.py`, the von Neumann machine's in `image_language.py`. The
kind of a machine of your own names such a class as `stock` (`machines/kind.py`): `examples/turing/turing_stock.py` has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from punchcard.language_models.stock.decoder import StockDecoder
    from punchcard.language_models.stock.positions import Positions

HALT = "halt"


@dataclass(frozen=True)
class TokenTrace:
    """What a trace says: the memory and the next instruction after it, how many instructions it has, whether it ends, and
    what was written."""

    memory: tuple[int, ...]
    program_counter: int
    steps: int
    halted: bool
    output: bytes = b""


class StockText(Protocol):
    """Texts of programs for some sizes. `machine` is the name of the kind."""

    machine: ClassVar[str]

    @property
    def tokens_a_step(self) -> int:
        """The most words of a trace for an instruction."""

    @property
    def looks_back(self) -> int:
        """How far a head looks back at most."""

    @classmethod
    def of(cls, sizes: Any) -> StockText:
        """The texts for the sizes of a machine, or for those of a folder, which are integers: attributes of `sizes`."""

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name."""

    def vocabulary(self) -> tuple[str, ...]:
        """The text of each token; the last ends a text."""

    def prompt(self, program: Any) -> str:
        """A program as the text that a model continues with."""

    def program(self, prompt: str) -> Any:
        """The program of a prompt. A prompt that is wrong is a `ProgramError`."""

    def expected(self, program: Any) -> Iterator[str]:
        """The words that follow a prompt, by a plain interpreter."""

    def decoded(self, program: Any, trace: Sequence[str]) -> TokenTrace:
        """What the words after a prompt say."""

    def decoder(self, positions: Positions) -> StockDecoder:
        """What a checkpoint computes, over bits."""
