"""What a loop carries and tells stays a small payload, however long it runs."""

from loopwright.contracts.artifacts import ArtifactRef
from loopwright.contracts.configs import MAX_SPARE_GROUPS, LoopConfig
from loopwright.contracts.evaluations import Estimate, EvaluateRequest, EvaluationResult
from loopwright.contracts.groups import ParkedRef
from loopwright.contracts.iterations import IterationResult, LoopInput, LoopState
from loopwright.contracts.policies import CheckpointRef, PolicyVersion
from loopwright.contracts.tasks import TaskRef
from loopwright.core.loop_bounds import (
    KEPT_EVALUATION_NAMES,
    KEPT_EVALUATIONS,
    KEPT_RESULTS,
    MAX_ASKED_EVALUATIONS,
)

LARGEST_BYTES = 64 * 1024
LOOP_ID = "l" * 64
LONG = -0.12345678901234567
METRICS = (
    *("loss", "entropy", "ratio", "clip_fraction", "kl", "gradient_norm", "num_steps"),
    *("num_tokens", "mismatch_mean", "mismatch_max", "mismatch_prob_error", "learning_rate"),
    *("mean_age", *(f"mismatch_mean_age_{age}" for age in range(1, 9))),
)
PHASES = ("rollout", "wait", "batch", "train", "publish", "total")
REPORT = ArtifactRef(
    key=f"loop/{LOOP_ID}/0123456789ab/iteration/099999/report-{'0' * 32}.json",
    sha256="0" * 64,
    num_bytes=99_999,
    kind="report",
)


def row() -> IterationResult:
    return IterationResult(
        index=99_999,
        outcome="skipped_no_signal",
        policy_version=99_999,
        checkpoint=None,
        num_episodes=12_800,
        num_failed=12_800,
        num_cancelled=12_800,
        num_groups=200,
        num_admitted=200,
        pass_rate=LONG,
        first_pass_rate=LONG,
        mean_reward=LONG,
        num_completion_tokens=999_999_999,
        seconds=dict.fromkeys(PHASES, 9999.999),
        metrics=dict.fromkeys(METRICS, LONG),
    )


def parked() -> ParkedRef:
    path = f"loop/{LOOP_ID}/iteration/099999/task/program_steps.{'t' * 40}"
    return ParkedRef(
        task=TaskRef(environment="program_steps", task_id="t" * 40),
        group_id=path,
        artifact=ArtifactRef(
            key=f"{path}/0123456789ab/parked-{'0' * 32}.json",
            sha256="0" * 64,
            num_bytes=99_999,
            kind="parked",
        ),
        oldest_version=99_999,
        num_episodes=72,
    )


def evaluation() -> EvaluationResult:
    estimate = Estimate(mean=LONG, low=LONG, high=LONG)
    return EvaluationResult(
        policy_version=99_999,
        iteration=99_999,
        num_tasks=200,
        samples=64,
        num_episodes=12_800,
        num_failed=12_800,
        num_lost=12_800,
        first_pass_rate=estimate,
        pass_rate=estimate,
        mean_reward=estimate,
        seconds=9999.999,
    )


def test_state_of_the_longest_loop_is_a_small_payload() -> None:
    policy = PolicyVersion(policy_id=f"{LOOP_ID}-0123456789ab", version=99_999)
    with_report = evaluation().model_copy(update={"report": REPORT})
    state = LoopState(
        uid="0123456789ab",
        checkpoint=CheckpointRef(policy=policy, manifest=REPORT, model_fingerprint="0" * 64),
        results=(row(),) * KEPT_RESULTS,
        base_evaluation=with_report,
        evaluations=(evaluation(),) * KEPT_EVALUATIONS,
        final_evaluation=with_report,
        asked_evaluations=(EvaluateRequest(name="e" * 200, num_tasks=200, samples=64),)
        * MAX_ASKED_EVALUATIONS,
        evaluation_names=("e" * 200,) * KEPT_EVALUATION_NAMES,
        parked=(parked(),) * MAX_SPARE_GROUPS,
    )
    carried = LoopInput(loop_id=LOOP_ID, config=LoopConfig(), state=state).model_dump_json()
    assert 0.5 * LARGEST_BYTES < len(carried) < LARGEST_BYTES
