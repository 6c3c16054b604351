"""A tokenizer whose tokens are the words of a text, for the library tokenizers: a text splits at white space.

Comments, from `;` to the end of a line, are not read. A word that is not a token is refused by the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

LABEL = r"^(?=-?\d+:$)"
OTHER = r"^(?=.*[^:]$)"


def write_tokenizer(vocabulary: Sequence[str], positions: int, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json. The last token is the end, and the padding."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}))
    made.normalizer = normalizers.Replace(Regex(r";[^\n]*"), "")
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.decoder = decoders.Sequence([decoders.Replace(Regex(OTHER), " "), decoders.Replace(Regex(LABEL), "\n"),
                                      decoders.Fuse()])
    PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=vocabulary[-1], pad_token=vocabulary[-1], padding_side="left",
        clean_up_tokenization_spaces=False, model_max_length=positions).save_pretrained(str(folder))
