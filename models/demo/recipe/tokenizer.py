"""The tokenizer: byte-level BPE with GLM's pre-tokenizer and GLM's special tokens.

While the merges are learned, digits stand alone, so that no merge joins two digits: GLM's pattern still groups up to
three of them, but each stays a token of its own, which sums need.
"""

from __future__ import annotations

from pathlib import Path
from typing import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

GLM_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = (
    "<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
    "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>", "<|begin_of_audio|>", "<|end_of_audio|>",
    "<|begin_of_transcription|>", "<|end_of_transcription|>", "<|code_prefix|>", "<|code_middle|>", "<|code_suffix|>",
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<arg_key>", "</arg_key>",
    "<arg_value>", "</arg_value>", "/nothink", "<|begin_of_box|>", "<|end_of_box|>", "<|image|>", "<|video|>",
)
# These carry text of the conversation's form, not of its control; decoders keep them.
PLAIN_ADDED = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<arg_key>", "</arg_key>",
               "<arg_value>", "</arg_value>", "/nothink", "<|code_prefix|>", "<|code_middle|>", "<|code_suffix|>")


def split(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(pattern), behavior="isolated")


def byte_level() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def train_tokenizer(texts: Iterable[str], vocab: int) -> Tokenizer:
    """Learns vocab - 36 base tokens; the special tokens take the last 36 ids."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Sequence([split(GLM_PATTERN), pre_tokenizers.Digits(individual_digits=True), byte_level()])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab - len(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    learner.train_from_iterator(texts, trainer)
    return with_glm_form(learner)


def with_glm_form(learner: Tokenizer) -> Tokenizer:
    import json

    model = json.loads(learner.to_str())["model"]
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    out = Tokenizer(models.BPE(vocab=model["vocab"], merges=merges, ignore_merges=True))
    out.pre_tokenizer = pre_tokenizers.Sequence([split(GLM_PATTERN), byte_level()])
    out.decoder = decoders.ByteLevel()
    out.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    return out


def load_tokenizer(path: Path) -> Tokenizer:
    return Tokenizer.from_file(str(path))
