"""What the scripted engine says: a function of token ids and seed, and of nothing else."""

from collections.abc import Sequence
from hashlib import sha256

LOGPROB = -0.5
"""Behaviour logprob of every token."""
_FIRST_TOKEN, _NUM_TOKENS = 32, 64
"""Ids that are plain text in any tokenizer."""
_LEAST_TOKENS, _SPREAD = 4, 12


def complete(
    token_ids: Sequence[int], seed: int, *, max_tokens: int, stop_token_ids: Sequence[int]
) -> tuple[int, ...]:
    """Give 4 to 15 plain tokens and the first stop token, cut at ``max_tokens``."""
    digest = sha256(f"{seed}:{_listed(token_ids)}".encode()).digest()
    length = _LEAST_TOKENS + digest[0] % _SPREAD
    said = [_FIRST_TOKEN + byte % _NUM_TOKENS for byte in digest[1 : 1 + length]]
    return (*said, stop_token_ids[0])[:max_tokens]


def turn_name(prompt_ids: Sequence[int], completion_ids: Sequence[int]) -> str:
    """Name a turn by its tokens; two samplings of one turn have one name, by any attempt."""
    text = f"{_listed(prompt_ids)}:{_listed(completion_ids)}"
    return sha256(text.encode()).hexdigest()[:32]


def _listed(token_ids: Sequence[int]) -> str:
    return ",".join(map(str, token_ids))
