"""Messages <-> token ids, by a model's own chat template.

The template is rendered with placeholders instead of contents, and contents are tokenised by
themselves with control tokens off: whatever a message says, it cannot end a turn or open one.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from transformers import AutoTokenizer

from loopwright.contracts.failures import ContractError
from loopwright.contracts.turns import Message

_PLACEHOLDER = "loopwright-content-{}-placeholder"
_TEMPLATE = "the chat template"


class Rendered(NamedTuple):
    """Parallel sequences of length T."""

    token_ids: tuple[int, ...]
    loss_mask: tuple[bool, ...]
    """True on what the assistant says, the token that ends its turn included."""


class Renderer:
    """Renders conversations for one tokenizer and chat template.

    The next prompt of an episode is the last prompt, the sampled ids, and ``continuation`` of the
    environment's messages: nothing that was sampled is tokenised again.
    """

    def __init__(self, directory: Path) -> None:
        """Load the tokenizer of a Hugging Face model directory.

        Raises:
            ContractError: it has no chat template, or one that changes what messages say.
        """
        self._tokenizer: Any = AutoTokenizer.from_pretrained(directory, local_files_only=True)
        if not self._tokenizer.chat_template:
            raise ContractError(f"the tokenizer in {directory} has no chat template")
        self._turn_end = self._find_turn_end()
        self.stop_token_ids: tuple[int, ...] = self._stop_token_ids()
        """Ids that end a completion."""
        self.fingerprint = self._fingerprint()
        """Digest of vocabulary, control tokens and template."""

    def opening(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Render the opening messages, up to where the policy speaks."""
        return self._encode(self._template(messages, for_generation=True), messages)

    def continuation(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Render what follows a completion that ended with its stop token.

        Args:
            messages: the environment's reply.
        """
        probe = (Message(role="user", content=""), Message(role="assistant", content=""))
        text = self._template((*probe, *messages), for_generation=True)
        _, _, after = text.partition(_PLACEHOLDER.format(1))
        if not after.startswith(self._turn_end):
            raise ContractError(f"{_TEMPLATE} ends the assistant's turn in another way here")
        rest = after[len(self._turn_end) :]
        return self._encode(rest, (*probe, *messages))

    def conversation(self, messages: Sequence[Message]) -> Rendered:
        """Render a whole conversation with the ids a rollout of it would have."""
        token_ids: list[int] = []
        loss_mask: list[bool] = []
        opened = 0
        for i, message in enumerate(messages):
            if message.role != "assistant":
                continue
            new = messages[opened:i]
            prompt = self.continuation(new) if opened else self.opening(new)
            completion = self._completion(message.content)
            token_ids += [*prompt, *completion]
            loss_mask += [False] * len(prompt) + [True] * len(completion)
            opened = i + 1
        return Rendered(tuple(token_ids), tuple(loss_mask))

    def decode(self, completion_ids: Sequence[int]) -> str:
        """Give the text of a completion, without control tokens."""
        text: str = self._tokenizer.decode(list(completion_ids), skip_special_tokens=True)
        return text

    def _completion(self, content: str) -> tuple[int, ...]:
        return (*self._encode_content(content), self.stop_token_ids[0])

    def _template(self, messages: Sequence[Message], *, for_generation: bool) -> str:
        """Render the template with a placeholder for each content."""
        text: str = self._tokenizer.apply_chat_template(
            [
                {"role": message.role, "content": _PLACEHOLDER.format(i)}
                for i, message in enumerate(messages)
            ],
            tokenize=False,
            add_generation_prompt=for_generation,
        )
        return text

    def _encode(self, text: str, messages: Sequence[Message]) -> tuple[int, ...]:
        """Tokenise a rendered template; placeholders become their contents, as plain text."""
        token_ids: list[int] = []
        for i, message in enumerate(messages):
            before, found, after = text.partition(_PLACEHOLDER.format(i))
            if found:
                token_ids += self._encode_control(before)
                token_ids += self._encode_content(message.content)
                text = after
        return (*token_ids, *self._encode_control(text))

    def _encode_control(self, text: str) -> list[int]:
        """Tokenise the template's own text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _encode_content(self, text: str) -> list[int]:
        """Tokenise what somebody says; control tokens in it stay plain text."""
        clean = text.encode("utf-8", "replace").decode()
        ids: list[int] = self._tokenizer.encode(
            clean, add_special_tokens=False, split_special_tokens=True
        )
        return ids

    def _find_turn_end(self) -> str:
        """Find the control token that the template ends the assistant's turn with."""
        probe = (Message(role="user", content=""), Message(role="assistant", content=""))
        whole = self._template(probe, for_generation=False)
        opening = self._template(probe[:1], for_generation=True)
        if opening == self._template(probe[:1], for_generation=False):
            raise ContractError(f"{_TEMPLATE} has no generation prompt (add_generation_prompt)")
        if not whole.startswith(opening):
            raise ContractError(
                f"{_TEMPLATE} renders a conversation differently once the assistant has spoken; "
                "prompts could not be extended token for token"
            )
        _, _, after = whole.partition(_PLACEHOLDER.format(1))
        for token in sorted(self._tokenizer.all_special_tokens, key=len, reverse=True):
            if after.startswith(token):
                return str(token)
        raise ContractError(
            f"{_TEMPLATE} ends the assistant's turn with {after!r}, not with a control token"
        )

    def _stop_token_ids(self) -> tuple[int, ...]:
        """Give the id that ends a turn first, then the tokenizer's own end if it is another."""
        turn_end = int(self._tokenizer.convert_tokens_to_ids(self._turn_end))
        end = self._tokenizer.eos_token_id
        return (turn_end,) if end in (None, turn_end) else (turn_end, int(end))

    def _fingerprint(self) -> str:
        vocabulary = sorted(self._tokenizer.get_vocab().items())
        text = repr((vocabulary, self._tokenizer.chat_template, self._tokenizer.all_special_ids))
        return sha256(text.encode()).hexdigest()
