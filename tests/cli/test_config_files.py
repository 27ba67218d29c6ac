"""Bad configurations: every problem at once, each with its line and what was expected."""

import re
from pathlib import Path

import pytest

from loopwright.cli.config_files import find_problems, read_config
from loopwright.contracts.configs import LoopConfig
from loopwright.contracts.failures import UserError
from tests.cli.test_examples import make_model


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "loop.yaml"


def problems(file: Path, text: str) -> list[str]:
    """Write the file and give its problems without the file's name."""
    file.write_text(text)
    return [problem.removeprefix(f"{file}:") for problem in find_problems(file)]


@pytest.mark.parametrize("text", ["1e-6", "1E-6", "0.000001", "1.0e-6", "+1e-06"])
def test_number_in_scientific_form_is_a_number(file: Path, text: str) -> None:
    file.write_text(f"train:\n  learning_rate: {text}\n")
    assert read_config(file).train.learning_rate == 1e-6


def test_what_is_left_out_keeps_its_default(file: Path) -> None:
    file.write_text("seed: 3\n")
    assert read_config(file) == LoopConfig(seed=3)


def test_byte_order_mark_and_carriage_returns_are_taken(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfiteration:\r\n  group_size: 4\r\n")
    assert read_config(file).iteration.group_size == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train:\n  learning_rte: 1", "2: train.learning_rte: unknown key; did you mean "
         "train.learning_rate?"),
        ("learning_rate: 1e-6", "1: learning_rate: unknown key here; learning_rate belongs "
         "under train"),
        ("train:\n  group_sise: 8", "2: train.group_sise: unknown key; did you mean "
         "iteration.group_size?"),
        ("train:\n  max_tokens: 8", "2: train.max_tokens: unknown key here; max_tokens belongs "
         "under episode or sampling"),
        ("train:\n  seed: 1", "2: train.seed: unknown key here; seed belongs under the top level"),
        ("seed: true", "1: seed: expected an integer, at least 0, below 2147483648, got true"),
        ('seed: "8"', "1: seed: expected an integer, at least 0, below 2147483648, got '8'"),
        ("seed: 8.0", "1: seed: expected an integer, at least 0, below 2147483648, got 8.0"),
        ("seed: -1", "1: seed: expected an integer, at least 0, below 2147483648, got -1"),
        ("seed: 1_0", "1: seed: expected an integer, at least 0, below 2147483648, got '1_0'"),
        ("seed: 010", "1: seed: expected an integer, at least 0, below 2147483648, got '010'"),
        ("seed:", "1: seed: expected an integer, at least 0, below 2147483648, got nothing"),
        ("train:\n  clip_high: true", "2: train.clip_high: expected a number, above 0, got true"),
        ("train:\n  clip_high: .nan", "2: train.clip_high: expected a finite number, got nan"),
        ("train:\n  clip_high: .inf", "2: train.clip_high: expected a finite number, got inf"),
        ("train:\n  clip_high: -.inf", "2: train.clip_high: expected a finite number, got -inf"),
        ("evaluation:\n  at_start: yes", "2: evaluation.at_start: expected true or false, "
         "got 'yes'"),
        ("evaluation:\n  at_start: off", "2: evaluation.at_start: expected true or false, "
         "got 'off'"),
        ("evaluation:\n  at_start: 1", "2: evaluation.at_start: expected true or false, got 1"),
        ("train:", "1: train: expected a mapping of keys, got nothing"),
        ("train: 3", "1: train: expected a mapping of keys, got 3"),
        ("train: [1]", "1: train: expected a mapping of keys, got a list"),
        ("environments: []", "1: environments: expected a list of one or more entries, "
         "got a list"),
        ("environments: {id: program_steps}", "1: environments: expected a list of one or more "
         "entries, got a mapping"),
        ("policy:\n  model: 3", "2: policy.model: expected text, got 3"),
        ("iteration:\n  group_size: 1", "2: iteration.group_size: expected an integer, at least "
         "2, at most 64, got 1"),
        ("iteration:\n  advantage: gae", "2: iteration.advantage: expected one of grpo, dr_grpo, "
         "rloo, got 'gae'"),
        ("num_iterations: many", "1: num_iterations: expected an integer or null, at least 0, "
         "at most 100000, got 'many'"),
        ("engines:\n  - name: Main Engine", "2: engines[0].name: expected text, of the form "
         "^[a-z0-9][a-z0-9-]{0,39}$, got 'Main Engine'"),
        ("environments:\n  - options: {a: [1, .nan]}", "2: environments[0].options.a[1]: expected "
         "a finite number, got nan"),
        ("environments:\n  - options: {seed: '1'}", "2: environments[0]: environment "
         "program_steps: seed: expected "),
        ("policy:\n  model: \"a\\ud800\"", "2: half a character stands alone in 'a\\ud800'"),
        ("policy:\n  model: " + "a" * 300, "2: policy.model: 'aaa"),
        ("seed: 1\nseed: 2", "2: seed: given twice, on line 1 and on line 2"),
        ("1: 2", "1: 1: unknown key"),
        ("? [a]\n: 1", "1: file: a key is not a name"),
        ("seed: &a 1", "1: &a: anchors are not taken; write the value out"),
        ("seed: !!int 1", "1: tag:yaml.org,2002:int: tags are not taken; leave it out"),
        ("train: !!python/object/apply:os.system [x]", "1: tag:yaml.org,2002:python/object/"
         "apply:os.system: tags are not taken; leave it out"),
        ("train:\n\tseed: 1", "2: not YAML: found character '\\t' that cannot start any token"),
        ("train:\n  clip_low: 0.2\n seed: 1", "3: not YAML: "),
        ("seed: 1\n---\nseed: 2", "2: not YAML: "),
        ("seed: \x07", "1: not YAML: special characters are not allowed"),
        ("", "1: expected a mapping of keys, got an empty file"),
        ("# nothing\n", "1: expected a mapping of keys, got an empty file"),
        ("- seed: 1", "1: expected a mapping of keys, got a list"),
        ("seed", "1: expected a mapping of keys, got 'seed'"),
        ("a: " + "[" * 30, "1: nested deeper than 16"),
        ("environments:\n  - id: program_step", "2: environments[0]: environment 'program_step' "
         "does not exist"),
        ("environments:\n  - options: {level: 3}", "2: environments[0]: environment "
         "program_steps: level"),
        ("environments:\n  - id: program_steps\n  - id: program_steps", "3: environments[1].id: "
         "program_steps is listed twice"),
        ("policy:\n  model: nowhere", "2: policy.model: there is no directory 'nowhere'; expected "
         "pico or a model directory"),
        ("sampling:\n  temperature: 1e-3", "2: sampling.temperature (0.001) must be 0 or at least "
         "0.01"),
        ("sampling:\n  max_tokens: 400", "2: sampling.max_tokens (400) must be smaller than "
         "episode.max_tokens (400)"),
        ("sampling:\n  temperature: 0", "sampling.temperature (0) must be above 0"),
        ("sampling:\n  top_k: 5", "sampling.top_p (1.0) must be 1 and sampling.top_k (5) 0"),
    ],
)  # fmt: skip
def test_problem_is_named_with_its_line(file: Path, text: str, expected: str) -> None:
    found = problems(file, text)
    assert len(found) >= 1
    assert any(expected in problem for problem in found), found


def test_all_problems_are_reported_at_once_in_the_order_of_lines(file: Path) -> None:
    text = "trian: {}\nseed: -1\nsampling:\n  top_p: 2\n  max_tokens: 900\nsede: 1\nseed: 2\n"
    found = problems(file, text)
    assert [int(problem.partition(":")[0]) for problem in found] == [1, 2, 4, 5, 6, 7]


def test_budgets_are_checked_although_something_else_is_wrong(file: Path) -> None:
    text = "sampling: {max_tokens: 500, top_k: 3}\nenvironments:\n  - id: nothing\nsede: 1\n"
    found = problems(file, text)
    assert [int(problem.partition(":")[0]) for problem in found] == [1, 1, 3, 4]


def test_conversation_too_short_for_any_task_is_refused(file: Path) -> None:
    (found,) = problems(file, "sampling: {max_tokens: 2}\nepisode: {max_tokens: 9}\n")
    assert re.search(r"2: episode.max_tokens: expected more than \d+, the tokens that", found)


def test_conversation_longer_than_the_context_of_the_engine_is_refused(
    file: Path, tmp_path: Path
) -> None:
    make_model(tmp_path / "long")
    model = f"policy: {{model: {tmp_path / 'long'}}}\nepisode: {{max_tokens: 2049}}\n"
    assert problems(file, model) == [
        "2: episode.max_tokens: expected at most 2048, the context of the engine that "
        "`loopwright up` starts, got 2049; for an engine with more, set profile to cluster"
    ]
    assert problems(file, model + "profile: cluster\n") == []


def test_command_that_outlasts_its_activity_is_refused(file: Path) -> None:
    found = problems(file, "episode:\n  limits:\n    wall_seconds: 541\n")
    assert found == [
        "3: episode.limits.wall_seconds: expected at most 540, since an episode must be graded "
        "within 600 s, got 541"
    ]


def test_tilde_is_the_home_folder(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    make_model(tmp_path / "own")
    file.write_text("policy: {model: ~/own}\n")
    assert read_config(file).policy.model == str(tmp_path / "own")


def test_missing_model_directory_comes_with_how_to_get_one(file: Path) -> None:
    (found,) = problems(file, "policy: {model: my-policy}\n")
    assert "`loopwright policy build DIR` makes one" in found


def test_environments_that_are_all_passed_by_are_refused(file: Path) -> None:
    (found,) = problems(file, "environments:\n  - {id: program_steps, is_passed_by: true}\n")
    assert "environments: expected one that is not passed by" in found


@pytest.mark.parametrize("text", ["engines:\n  - name: A b", "environments:\n  - id: null"])
def test_list_with_one_wrong_entry_is_a_list(file: Path, text: str) -> None:
    (found,) = problems(file, text)
    assert "expected text" in found


def test_unknown_section_is_reported_with_its_keys(file: Path) -> None:
    found = problems(file, "sandbox:\n  memmory_mb: 256\n")
    assert found[0].startswith("1: sandbox: unknown key; known here: policy, environments")
    assert (
        found[1] == "2: sandbox.memmory_mb: unknown key; did you mean episode.limits.memory_bytes?"
    )


def test_aliases_are_not_expanded(file: Path) -> None:
    text = "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n"
    assert any("*b: aliases are not taken" in problem for problem in problems(file, text))


def test_model_directory_is_looked_into(file: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    found = problems(file, f"policy:\n  model: {tmp_path / 'model'}\n")
    assert [lack for lack in ("config.json", "weights", "tokenizer") if lack in str(found)] == [
        "config.json",
        "weights",
        "tokenizer",
    ]


def test_conversation_longer_than_the_model_takes_is_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 128}')
    found = problems(file, f"policy:\n  model: {tmp_path}\nepisode:\n  max_tokens: 200\n")
    assert any("4: episode.max_tokens: expected at most 128" in problem for problem in found)


def test_engine_that_the_platform_lacks_is_named_with_its_line(file: Path) -> None:
    file.write_text("seed: 1\nengines:\n  - name: mian\n")
    expected = (
        r"loop\.yaml:3: engines\[0\]\.name: expected an engine of the platform \(main\), "
        r"got 'mian'; did you mean 'main'\?"
    )
    with pytest.raises(UserError, match=expected):
        read_config(file, engines={"main"})


def test_engines_of_a_platform_elsewhere_are_not_judged(file: Path) -> None:
    file.write_text("engines:\n  - name: big\n")
    assert read_config(file).engines[0].name == "big"


def test_file_of_another_encoding_is_refused(file: Path) -> None:
    file.write_bytes(b"seed: 1\nname: caf\xe9\n")
    with pytest.raises(UserError, match=r"loop\.yaml:2: expected UTF-8 text, got the byte 0xe9"):
        read_config(file)


def test_large_file_is_refused(file: Path) -> None:
    file.write_text("#" * 70_000)
    with pytest.raises(UserError, match="at most 65536 bytes"):
        read_config(file)


def test_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected a YAML file, got a directory"):
        read_config(tmp_path)


def test_missing_file_is_named(file: Path) -> None:
    with pytest.raises(UserError, match=r"loop\.yaml: cannot be read: No such file"):
        read_config(file)
