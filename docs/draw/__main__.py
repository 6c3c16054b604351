"""Draws the pictures: `python -m docs.draw [NAME ...]`, by default all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from docs.draw import attention, boot, card, engines, losses, nine_layers, product_error, running
from docs.draw.svg import PICTURES

DRAWN: dict[str, Callable[[], str]] = {
    "card": card.picture,
    "running": running.picture,
    "attention": attention.picture,
    "nine-layers": nine_layers.picture,
    "product-error": product_error.picture,
    "engines": engines.picture,
    "boot": boot.picture,
    **{f"loss-{data}": partial(losses.picture, data) for data in losses.TITLES},
}


def main(names: list[str]) -> None:
    if unknown := [name for name in names if name not in DRAWN]:
        sys.exit(f"{unknown[0]} is not a picture: there are {', '.join(DRAWN)}")
    for name in names or DRAWN:
        (PICTURES / f"{name}.svg").write_text(DRAWN[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
