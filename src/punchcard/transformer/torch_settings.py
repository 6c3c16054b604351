"""Torch's settings while a loop is made: those under which torch computes the equation as it is written.

autocast            would compute products in half precision; off for the card's device
float32 products    TF32 or bfloat16 would lose bits of the weights; in full
small numbers       may be flushed to 0, in products and in the tail of a softmax; kept

Each is put back afterwards; a backend whose precision is the one that it would inherit inherits it then. Autocast and the
flushing belong to a thread. The precision of float32 products belongs to the process: the first of several threads that make
loops sets it, and the last one puts it back. In between another thread sees full precision, and must not change it. Torch's
own worker threads flush if they were started by a thread that did.

Code that `torch.compile` or `torch.export` makes of a model has the settings of its caller.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Method = TypeVar("Method", bound=Callable[..., Any])
FULL = ("ieee", "none")
"""What torch calls the full precision of products: asked for, or by default."""


class Backend(Protocol):
    """Where torch keeps the precision of float32 products on a kind of device."""

    fp32_precision: str


class LegacyBackend:
    """The precision by torch's older calls: one setting for all devices, and before torch 2.9 the only one.

    Later versions keep it beside those of the backends. Where the two disagree, torch refuses to say it as a whole; then it
    is what `allow_tf32` says of CUDA, or else in full.
    """

    @property
    def fp32_precision(self) -> str:
        import torch

        try:
            found = torch.get_float32_matmul_precision()
        except RuntimeError:
            found = "high" if self._allows_tf32() else "highest"
        return "ieee" if found == "highest" else found

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        import torch

        torch.set_float32_matmul_precision("highest" if value == "ieee" else value)

    @staticmethod
    def _allows_tf32() -> bool:
        import torch

        try:
            return bool(torch.backends.cuda.matmul.allow_tf32)
        except RuntimeError:
            return False


def backends() -> list[Backend]:
    """Those of this version of torch."""
    import torch

    if hasattr(torch.backends.mkldnn, "matmul"):
        return [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul]
    return [LegacyBackend()]


def own_precision(backend: Backend) -> str:
    """What to put back: "none" where a backend has what it would inherit. It inherits afterwards."""
    found = backend.fp32_precision
    if isinstance(backend, LegacyBackend):
        return found
    backend.fp32_precision = "none"
    return "none" if backend.fp32_precision == found else found


def are_full() -> bool:
    """Whether no backend narrows products."""
    return all(backend.fp32_precision in FULL for backend in backends())


class FullPrecisionProducts:
    """Full precision of float32 products, while a loop is made in any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loops = 0
        self.kept: list[tuple[Backend, str]] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        with self.lock:
            self.loops += 1
            if not are_full():
                with warnings.catch_warnings():  # torch 2.9 calls the older setting deprecated
                    warnings.simplefilter("ignore")
                    self._set()

    def _set(self) -> None:
        """The older setting changes those of the backends: it is read first, and put back first."""
        found = [(backend, own_precision(backend)) for backend in (LegacyBackend(), *backends())]
        self.kept += reversed(found)
        for backend, _ in found:
            backend.fp32_precision = "ieee"

    def _leave(self) -> None:
        with self.lock:
            self.loops -= 1
            while self.kept and not self.loops:
                backend, before = self.kept.pop()
                backend.fp32_precision = before


class CurrentThread(threading.local):
    """Whether this thread makes a loop, so that nothing needs to be set."""

    inside = False


full_products, current_thread = FullPrecisionProducts(), CurrentThread()


@contextmanager
def small_numbers_kept() -> Iterator[None]:
    """In this thread, numbers below the smallest normal one are not flushed to 0."""
    if sys.float_info.min / 2:
        yield
        return
    import torch

    torch.set_flush_denormal(False)
    try:
        yield
    finally:
        torch.set_flush_denormal(True)


def computes_equation(device: torch.device) -> bool:
    """Whether torch's current settings already compute the equation exactly as written on this device."""
    return not is_casting(device) and are_full()


def is_casting(device: torch.device) -> bool:
    """Whether there is an autocast for a device, and it is on."""
    import torch

    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


@contextmanager
def equation_settings(device: torch.device) -> Iterator[None]:
    """The settings of the equation, for tensors on a device."""
    import torch

    uncast = torch.autocast(device.type, enabled=False) if is_casting(device) else nullcontext()
    before = current_thread.inside
    with uncast, full_products(), small_numbers_kept():
        current_thread.inside = True
        try:
            yield
        finally:
            current_thread.inside = before


def as_the_equation(method: Method) -> Method:
    """A method of a model that is given a card: it computes under the settings of the equation."""
    @wraps(method)
    def guarded(self: object, card: Tensor, *args: Any, **named: Any) -> Any:
        import torch

        if torch.compiler.is_compiling() or (current_thread.inside and not is_casting(card.device)):
            return method(self, card, *args, **named)
        with equation_settings(card.device):
            return method(self, card, *args, **named)

    return cast(Method, guarded)
