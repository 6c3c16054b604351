"""A drawing of the loss after each epoch. matplotlib is optional: `pip install punchcard[plot]`."""

from __future__ import annotations

import io
from pathlib import Path

from punchcard.errors import PunchcardError
from punchcard.files import write_atomic
from punchcard.learning.training import Learned
from punchcard.viewer.pictures import new_figure


def require_matplotlib(path: str | Path) -> None:
    """Refuse what cannot be drawn before anything is computed: no matplotlib, or no such kind of picture."""
    if Path(path).suffix.lower().lstrip(".") not in new_figure(1.0, 1.0).canvas.get_supported_filetypes():
        raise PunchcardError(f"plot {str(path)!r}: use the extension .png, .svg or .pdf")


def draw_losses(learned: Learned, path: str | Path) -> None:
    """The loss before learning and after each epoch, on a logarithmic scale where it is positive."""
    require_matplotlib(path)
    losses = [learned.initial_loss, *learned.losses]
    figure = new_figure(6.4, 4.0)
    axes = figure.add_subplot()
    axes.plot(range(len(losses)), losses, marker="o" if len(losses) <= 30 else None, markersize=3)
    if min(losses) > 0:
        axes.set_yscale("log")
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"mean {learned.model.network.loss.name} loss")
    axes.grid(alpha=0.3)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=Path(path).suffix.lower().lstrip("."), dpi=150)
    write_atomic(path, drawn.getvalue())
