"""A gate from its start to its verdict: what it asks for, what it says, and what it refuses."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from gate_files import GateFiles, contents, rows_of, write_gate_files

import touchstone_ir
from analytics.estimation.sequences import always_valid_factor
from sampling.draws import permanent_random_numbers
from sampling.measures.registry import WrongKind
from touchstone_ir import gate_steps as gates
from touchstone_ir.columns import InputRefused
from touchstone_ir.gate_folder import GateFolder


@pytest.fixture
def files(tmp_path: Path) -> GateFiles:
    return write_gate_files(tmp_path)


@pytest.fixture
def asked(files: GateFiles) -> Path:
    """Return the first batch of a gate, not filled in."""
    files.start()
    gates.next_batch(files.folder / "G", files.folder / "batch.csv")
    return files.folder / "batch.csv"


def items_of(files: GateFiles) -> list[list[str]]:
    """Return the rows of the pairs that one run alone has within the cutoff: those that P@5 weighs."""
    header, *pairs = rows_of(files.folder / "G" / "pairs.csv")
    assert header == ["topic", "doc", "rank_a", "rank_b", "label"]
    return [row for row in pairs if (row[2] == "0") != (row[3] == "0")]


def looks_of(files: GateFiles) -> list[dict]:
    return [json.loads(line) for line in (files.folder / "G" / "looks.jsonl").read_text().splitlines()]


# -- the way to a verdict -----------------------------------------------------------------------------------------


def test_a_much_better_run_is_found_to_be_so_within_the_cap(files: GateFiles) -> None:
    files.start()
    state = files.play()
    assert (state.verdict, state.exit_code) in (("better", 0), ("not worse", 0))
    assert 20 <= state.n_judged <= 90
    assert state.open_batch is None


def test_a_much_worse_run_is_found_to_be_so(tmp_path: Path) -> None:
    files = write_gate_files(tmp_path, better_by=3.0)
    sources = files.sources | {"a": files.sources["b"], "b": files.sources["a"]}
    files.start(**sources)
    state = files.play()
    assert (state.verdict, state.exit_code) == ("worse", 1)


def test_alike_runs_are_undecided_at_the_cap(tmp_path: Path) -> None:
    files = write_gate_files(tmp_path, better_by=0.0)
    files.start(tolerance=0.0, cap=60)
    state = files.play()
    assert (state.verdict, state.exit_code) == ("undecided", 4)
    assert state.n_judged <= 60


def test_what_is_asked_for_follows_from_the_permanent_numbers(files: GateFiles, asked: Path) -> None:
    items = items_of(files)
    number = permanent_random_numbers([row[0] for row in items], [row[1] for row in items], 7, "gate")
    # P@5 weighs all items alike: 20 expected ones are those with the smallest numbers
    expected = [row[:2] for row, one in zip(items, number, strict=True) if one < 20 / len(items)]
    assert [row[:2] for row in rows_of(asked)[1:]] == expected
    assert {row[2] for row in rows_of(asked)[1:]} == {""}


def test_items_are_the_pairs_that_one_run_alone_has_within_the_cutoff(files: GateFiles) -> None:
    files.start()
    near = []
    for name in ("old", "new"):
        fields = [line.split() for line in (files.folder / f"{name}.run").read_text().splitlines()]
        near.append({(row[0], row[2]) for row in fields if int(row[3]) <= 5})
    assert {(row[0], row[1]) for row in items_of(files)} == near[0] ^ near[1]


def test_every_look_is_the_number_with_the_bounds_of_the_sequence(files: GateFiles) -> None:
    files.start(tolerance=0.0, cap=100)
    state = files.play()
    looks = looks_of(files)
    assert len(looks) >= 2
    for look in looks:
        factor = float(always_valid_factor(look["n_judged"], 40, n_items=state.n_items))
        assert look["low"] == pytest.approx(look["value"] - factor * look["standard_error"])
        assert look["high"] == pytest.approx(look["value"] + factor * look["standard_error"])


def test_a_look_is_what_compare_says_of_the_same_gold(files: GateFiles) -> None:
    files.start(tolerance=0.0, cap=100)
    files.play()
    gate = GateFolder(files.folder / "G")
    last = gate.batches[len(gate.looks) - 1]
    gold = [
        f"{topic} {doc} {files.truth[topic, doc]} 1 {float(last.probability[place])!r}\n"
        for place, (topic, doc) in enumerate(gate.pairs.items)
        if place in last.asked
    ]
    (files.folder / "gold.prels").write_text("".join(gold))
    sources = files.sources
    runs = [sources["a"], sources["b"]]
    found = touchstone_ir.compare(
        runs,
        "P@5",
        labels=sources["labels"],
        gold=files.folder / "gold.prels",
        of="new",
        claim="these-topics",
    )
    row = found.frame.row(0, named=True)
    assert (row["value"], row["standard_error"]) == pytest.approx(
        (gate.looks[-1].value, gate.looks[-1].standard_error), rel=1e-12
    )


def test_a_gate_that_judges_everything_says_the_truth_without_error(files: GateFiles) -> None:
    files.start(cap=10_000, plan=1000, batch=5000, tolerance=0.0)
    state = files.play()
    near = [
        sum(
            files.truth[row[0], row[2]]
            for row in map(str.split, (files.folder / f"{name}.run").read_text().splitlines())
            if int(row[3]) <= 5
        )
        for name in ("old", "new")
    ]
    look = looks_of(files)[-1]
    if look["n_judged"] == state.n_items:  # it had no verdict before
        assert (look["value"], look["standard_error"]) == (pytest.approx((near[1] - near[0]) / 100), 0)
    assert np.sign(look["value"]) == np.sign(near[1] - near[0])


def test_require_better_goes_on_where_b_is_merely_not_worse(tmp_path: Path) -> None:
    files = write_gate_files(tmp_path, better_by=0.3)
    files.start(tolerance=0.3, cap=60)
    assert files.play().verdict == "not worse"
    state = gates.status(files.folder / "G", require="better")
    assert (state.verdict, state.exit_code) == ("judgments wanted", 3)
    asked = gates.next_batch(files.folder / "G", files.folder / "batch.csv", require="better")
    assert asked.n_open == len(rows_of(files.folder / "batch.csv")) - 1 > 0
    gates.answer(files.folder / "G", files.fill(files.folder / "batch.csv"), require="better")
    assert gates.status(files.folder / "G").verdict == "not worse", "a verdict stands"


# -- again, and elsewhere -----------------------------------------------------------------------------------------


def test_every_step_may_be_repeated(files: GateFiles, asked: Path) -> None:
    folder, before = files.folder / "G", asked.read_bytes()
    files.start()
    gates.next_batch(folder, asked)
    assert asked.read_bytes() == before
    gates.answer(folder, files.fill(asked))
    kept = contents(folder)
    gates.answer(folder, asked)
    gates.status(folder)
    assert contents(folder) == kept


def test_a_copy_elsewhere_asks_for_the_same_pairs(files: GateFiles, tmp_path: Path) -> None:
    files.start()
    files.play(most=1)
    shutil.copytree(files.folder / "G", tmp_path / "far" / "away" / "H")
    for folder, out in ((files.folder / "G", "here.csv"), (tmp_path / "far" / "away" / "H", "there.csv")):
        gates.next_batch(folder, tmp_path / out)
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()
    assert len(rows_of(tmp_path / "here.csv")) > 5


def test_another_seed_asks_for_other_pairs(files: GateFiles) -> None:
    for name, seed in (("G", 7), ("H", 8)):
        files.start(name, seed=seed)
        gates.next_batch(files.folder / name, files.folder / f"{name}.csv")
    assert rows_of(files.folder / "G.csv") != rows_of(files.folder / "H.csv")


def test_texts_of_a_corpus_stand_in_the_last_column(files: GateFiles, asked: Path) -> None:
    lines = [
        json.dumps({"_id": f"d{doc}", "title": f"Title {doc}", "text": 'a, "b"\nc'}) for doc in range(30)
    ]
    corpus = files.folder / "corpus.jsonl"
    corpus.write_text("\n".join(lines))
    gates.next_batch(files.folder / "G", asked, corpus)
    header, *rows = rows_of(asked)
    assert header == ["topic", "doc", "grade", "text"]
    assert all(row[3] == f'Title {row[1][1:]}\n\na, "b"\nc' for row in rows)
    assert gates.answer(files.folder / "G", files.fill(asked)).n_judged == len(rows)


def test_the_function_of_the_package_starts_and_opens(files: GateFiles) -> None:
    question = {"measure": "P@5", "tolerance": 0.02, "cap": 90, "plan": 40, "batch": 20, "seed": 7}
    gate = touchstone_ir.gate(files.folder / "G", **files.sources, **question)
    gate.next_batch(files.folder / "batch.csv")
    gate.answer(files.fill(files.folder / "batch.csv"))
    assert touchstone_ir.gate(files.folder / "G").status().n_judged > 0


# -- bad input ----------------------------------------------------------------------------------------------------


def refuse_answer(files: GateFiles, batch: Path, words: str) -> None:
    """Assert that the batch is refused with these words, and that nothing is changed."""
    before = contents(files.folder / "G")
    with pytest.raises(ValueError, match=words):
        gates.answer(files.folder / "G", batch)
    assert contents(files.folder / "G") == before


def test_a_batch_without_a_line_is_refused(files: GateFiles, asked: Path) -> None:
    lines = files.fill(asked).read_text().splitlines(keepends=True)
    asked.write_text("".join(lines[:-1]))
    topic, doc = lines[-1].split(",")[:2]
    refuse_answer(
        files, asked, f"^batch.csv:{len(lines)}:1: document {doc} of topic {topic} of batch 1 is missing$"
    )


def test_a_batch_with_a_foreign_line_is_refused(files: GateFiles, asked: Path) -> None:
    n_lines = len(files.fill(asked).read_text().splitlines())
    with asked.open("a") as stream:
        stream.write("t00,elsewhere,1\n")
    refuse_answer(
        files,
        asked,
        f"^batch.csv:{n_lines + 1}:1: document elsewhere of topic t00 is not asked for in batch 1$",
    )


def test_a_batch_with_an_altered_line_is_refused(files: GateFiles, asked: Path) -> None:
    lines = files.fill(asked).read_text().splitlines(keepends=True)
    lines[3] = lines[3].replace(",d", ",x")
    asked.write_text("".join(lines))
    refuse_answer(files, asked, "^batch.csv:4:1: document x.* is not asked for in batch 1$")


@pytest.mark.parametrize(
    ("grade", "words"),
    [
        ("", "no grade of"),
        ("yes", "not 'yes'"),
        ("-1", "not '-1'"),
        ("1.5", "not '1.5'"),
        ("128", "not '128'"),
    ],
)
def test_a_grade_that_is_none_is_refused(files: GateFiles, asked: Path, grade: str, words: str) -> None:
    rows = rows_of(files.fill(asked))
    rows[2][2] = grade
    asked.write_text("".join(",".join(row) + "\n" for row in rows))
    refuse_answer(files, asked, rf"^batch.csv:3:\d+: .*{words}")


def test_a_pair_twice_and_a_missing_column_are_refused(files: GateFiles, asked: Path) -> None:
    lines = files.fill(asked).read_text().splitlines(keepends=True)
    asked.write_text("".join([*lines, lines[1]]))
    refuse_answer(files, asked, r"occurs twice \(first on line 2\)")
    asked.write_text("topic,doc\nt00,d1\n")
    refuse_answer(files, asked, "^batch.csv:1:1: no column named grade$")
    asked.write_text("topic,doc,grade\n")
    refuse_answer(files, asked, "is missing, and")


def test_a_batch_answered_otherwise_before_is_refused(files: GateFiles, asked: Path) -> None:
    gates.answer(files.folder / "G", files.fill(asked))
    rows = rows_of(asked)
    rows[1][2] = str(1 - int(rows[1][2]))
    asked.write_text("".join(",".join(row) + "\n" for row in rows))
    refuse_answer(files, asked, "^batch.csv:2:.* of batch 1 was answered with")


def test_an_answer_to_what_was_not_asked_yet_is_refused(files: GateFiles, asked: Path) -> None:
    (files.folder / "G" / "batches" / "0001.csv").unlink()
    refuse_answer(files, files.fill(asked), "batch 1 was not asked for yet")


@pytest.mark.parametrize("name", ["a", "b", "labels"])
def test_files_that_changed_since_the_start_are_refused(files: GateFiles, asked: Path, name: str) -> None:
    source = files.sources[name]
    source.write_text(source.read_text().replace("d1 ", "d1x "))
    for step in (
        lambda: gates.next_batch(files.folder / "G", asked),
        lambda: gates.status(files.folder / "G"),
    ):
        with pytest.raises(
            InputRefused, match=rf"{source.name}: .* changed since the gate started \(SHA-256"
        ):
            step()
    refuse_answer(files, files.fill(asked), "changed since the gate started")


@pytest.mark.parametrize(
    "kept", ["gate.json", "pairs.csv", "batches/0001.csv", "answers/0001.csv", "looks.jsonl"]
)
def test_a_file_of_the_gate_that_was_altered_is_refused(files: GateFiles, asked: Path, kept: str) -> None:
    gates.answer(files.folder / "G", files.fill(asked))
    path = files.folder / "G" / kept
    changes = {"gate.json": ('"cap": 90', '"cap": 95'), "looks.jsonl": ('"batch":1', '"batch":2')}
    before, after = changes.get(kept, ("t0", "t1"))
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    with pytest.raises(ValueError, match=r"altered|is not asked for|the look at batch 2, where 1 comes"):
        gates.answer(files.folder / "G", asked)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"cap": 19}, "cap must be at least 20"),
        ({"tolerance": -1.0}, "tolerance must be at least 0"),
        ({"seed": -1}, "seed must be within"),
        ({"seed": 2**64}, "seed must be within"),
        ({"measure": "P"}, "needs a cutoff"),
    ],
)
def test_a_question_off_its_range_starts_nothing(files: GateFiles, other: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        files.start(**other)
    assert not (files.folder / "G").exists()


def test_a_measure_that_is_no_sum_starts_nothing(files: GateFiles) -> None:
    with pytest.raises(WrongKind, match="nDCG@10"):
        files.start(measure="nDCG@10")
    assert not (files.folder / "G").exists()


def test_another_question_in_the_same_folder_is_refused(files: GateFiles) -> None:
    files.start()
    with pytest.raises(InputRefused, match=r"another question is here already: cap is 90 there, 50 here"):
        files.start(cap=50)
    files.sources["b"].write_text(files.sources["b"].read_text().replace(" new\n", " newer\n"))
    with pytest.raises(InputRefused, match="b is another file"):
        files.start()


def test_runs_without_a_common_topic_start_nothing(files: GateFiles) -> None:
    source = files.sources["b"]
    source.write_text(source.read_text().replace("t", "u"))
    with pytest.raises(
        InputRefused, match=r"no topic is common .*: A 20 \('t00', ...\), B 20 \('u00', ...\)"
    ):
        files.start()


def test_a_score_that_is_no_number_is_named_with_its_line(files: GateFiles) -> None:
    lines = files.sources["b"].read_text().splitlines(keepends=True)
    fields = lines[4].split()
    lines[4] = " ".join([*fields[:4], "nan", fields[5]]) + "\n"
    files.sources["b"].write_text("".join(lines))
    with pytest.raises(ValueError, match=r"/new.run:5:\d+: score must be a finite number, not 'nan'$"):
        files.start()
    assert not (files.folder / "G").exists()


def test_runs_that_rank_alike_start_nothing(files: GateFiles) -> None:
    with pytest.raises(InputRefused, match="the runs differ in 0 pairs"):
        files.start(b=files.sources["a"])


def test_labels_that_lack_an_item_or_are_negative_start_nothing(files: GateFiles) -> None:
    labels = files.sources["labels"]
    whole = labels.read_text()
    labels.write_text("t00 0 d0 1\n")
    with pytest.raises(
        InputRefused, match=r"llm.qrels: no label of document .* of topic t00 and of \d+ more pairs"
    ):
        files.start()
    labels.write_text(whole.replace(" 1\n", " -2\n"))
    with pytest.raises(InputRefused, match="lines have the grade -2: say with grades="):
        files.start()
    assert not (files.folder / "G").exists()
    assert files.start(grades={-2: 1}).open_batch == 1


def test_a_folder_without_a_gate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="no gate has started here"):
        gates.status(tmp_path)


def test_a_corpus_that_lacks_a_document_changes_nothing(files: GateFiles, asked: Path) -> None:
    corpus, gate = files.folder / "corpus.jsonl", files.folder / "G"
    corpus.write_text('{"_id": "other", "text": "x"}\n')
    before = contents(gate), asked.read_bytes()
    with pytest.raises(InputRefused, match=r"corpus.jsonl: document .* is not there"):
        gates.next_batch(gate, asked, corpus)
    assert (contents(gate), asked.read_bytes()) == before
