"""A program inside a pretrained language model."""

from punchcard.language_models.fusion.composition import fuse, open_fused

__all__ = ["fuse", "open_fused"]
