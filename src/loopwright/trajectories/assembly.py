"""Turn records become the samples of a trajectory."""

from collections.abc import Sequence

from loopwright.contracts.policies import PolicySpan
from loopwright.contracts.turns import TurnRecord
from loopwright.trajectories.trajectory import Sample


def assemble_samples(records: Sequence[TurnRecord]) -> tuple[Sample, ...]:
    """Join turns into as few samples as the extension property allows (methods L1 d).

    A turn belongs to the sample before it when its prompt starts with exactly the tokens of that
    sample; otherwise the context was rewritten, and it opens a new one.
    """
    samples: list[_Builder] = []
    for record in records:
        if not samples or not samples[-1].extends_to(record.prompt_ids):
            samples.append(_Builder())
        samples[-1].add(record)
    return tuple(builder.build() for builder in samples)


def policy_span(records: Sequence[TurnRecord]) -> PolicySpan | None:
    """Give the oldest and newest version that sampled a token; None before the first."""
    versions = [span.version for record in records for span in record.version_spans]
    return PolicySpan(oldest=min(versions), newest=max(versions)) if versions else None


class _Builder:
    """One sample while it grows."""

    def __init__(self) -> None:
        self._token_ids: list[int] = []
        self._loss_mask: list[bool] = []
        self._logprobs: list[float] = []
        self._versions: list[int] = []
        self._turns: list[int] = []

    def extends_to(self, prompt_ids: Sequence[int]) -> bool:
        """Tell whether a prompt goes on from this sample."""
        return list(prompt_ids[: len(self._token_ids)]) == self._token_ids

    def add(self, record: TurnRecord) -> None:
        """Append what is new in the prompt, then the completion."""
        new = record.prompt_ids[len(self._token_ids) :]
        self._append(new, is_trained=False, logprobs=[0.0] * len(new), versions=[-1] * len(new))
        self._turns += [-1] * len(new)
        self._append(
            record.completion_ids,
            is_trained=True,
            logprobs=record.behaviour_logprobs,
            versions=_versions(record),
        )
        self._turns += [record.index] * len(record.completion_ids)

    def build(self) -> Sample:
        """Freeze the sample."""
        return Sample(
            token_ids=tuple(self._token_ids),
            loss_mask=tuple(self._loss_mask),
            behaviour_logprobs=tuple(self._logprobs),
            versions=tuple(self._versions),
            turns=tuple(self._turns),
        )

    def _append(
        self,
        token_ids: Sequence[int],
        *,
        is_trained: bool,
        logprobs: Sequence[float],
        versions: Sequence[int],
    ) -> None:
        self._token_ids += token_ids
        self._loss_mask += [is_trained] * len(token_ids)
        self._logprobs += logprobs
        self._versions += versions


def _versions(record: TurnRecord) -> list[int]:
    """Give the version of each completion token."""
    versions: list[int] = []
    for span in record.version_spans:
        versions += [span.version] * (span.end - span.start)
    return versions
