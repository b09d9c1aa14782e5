"""Is this release what it says? ``python verify.py`` checks every file, and computes the numbers again from the facts.

With Python 3.11, NumPy and the modules beside it. It tells what agrees (numbers within one part in a thousand million),
what differs, and what could not be computed again; its exit code is 0 only if nothing differs.
"""

import argparse
import hashlib
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

if __package__:
    from analytics.releases.verify_claims import NEAR_ZERO, check_comparisons, compare_estimate
    from analytics.releases.verify_complete import CompleteMethod, ValueOfSample
    from analytics.releases.verify_confusions import accuracy_of, confusion_tables, with_intervals
    from analytics.releases.verify_estimates import REFUSED, WeightTable
    from analytics.releases.verify_facts import Facts, Row, draw_probability, json_lines, read_facts
    from analytics.releases.verify_files import LINE_FILES, Graded, words_of
    from analytics.releases.verify_gold import check_predictions, check_shares
    from analytics.releases.verify_grades import CLASSES, RULES, grades_of
    from analytics.releases.verify_measures import MEASURES, RATIOS, parts_of
    from analytics.releases.verify_methods import METHODS, MethodForms, answers_of_topics
    from analytics.releases.verify_ranges import OUTSIDE, beside
    from analytics.releases.verify_ratios import RatioMethod
else:  # in a release, the files lie beside each other
    sys.dont_write_bytecode = True  # a check leaves no files behind
    from verify_claims import NEAR_ZERO, check_comparisons, compare_estimate  # type: ignore
    from verify_complete import CompleteMethod, ValueOfSample  # type: ignore
    from verify_confusions import accuracy_of, confusion_tables, with_intervals  # type: ignore
    from verify_estimates import REFUSED, WeightTable  # type: ignore
    from verify_facts import Facts, Row, draw_probability, json_lines, read_facts  # type: ignore
    from verify_files import LINE_FILES, Graded, words_of  # type: ignore
    from verify_gold import check_predictions, check_shares  # type: ignore
    from verify_grades import CLASSES, RULES, grades_of  # type: ignore
    from verify_measures import MEASURES, RATIOS, parts_of  # type: ignore
    from verify_methods import METHODS, MethodForms, answers_of_topics  # type: ignore
    from verify_ranges import OUTSIDE, beside  # type: ignore
    from verify_ratios import RatioMethod  # type: ignore

CLOSE = 1e-9  # relative
MOST_NAMED = 20


@dataclass
class Report:
    """What was compared, by kind; what differs, in words; what was not computed again, by reason."""

    same: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    not_recomputed: Counter[str] = field(default_factory=Counter)

    def compare(self, kind: str, where: str, recorded: Any, again: Any, near_zero: float = 0.0) -> None:
        """Count two numbers (or nested lists of them, or texts) as the same, or note that they differ."""
        if agree(recorded, again, near_zero):
            self.same[kind] += 1
        else:
            self.different.append(f"{where}: recorded {_short(recorded)}, computed again {_short(again)}")


def agree(recorded: Any, again: Any, near_zero: float) -> bool:
    if isinstance(recorded, list) and isinstance(again, list):
        both = zip(recorded, again, strict=False)
        return len(recorded) == len(again) and all(agree(one, other, near_zero) for one, other in both)
    if isinstance(recorded, int | float) and isinstance(again, int | float):
        return math.isclose(recorded, again, rel_tol=CLOSE, abs_tol=near_zero)
    return bool(recorded == again)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# -- files -------------------------------------------------------------------------------------------------------


def check_files(folder: Path, manifest: Row, report: Report) -> None:
    """Compare size and SHA-256 of every file with the manifest; a file that it does not name differs too."""
    listed = {entry["path"]: entry for entry in manifest["files"]}
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    names = {name for name in names if "__pycache__/" not in name}
    report.different += [
        f"{name}: not in manifest.json" for name in sorted(names - listed.keys() - {"manifest.json"})
    ]
    for name, entry in listed.items():
        if name not in names:
            report.different.append(f"{name}: missing")
            continue
        digest, size = hashlib.sha256(), 0
        with (folder / name).open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
                size += len(block)
        report.compare("files", name, [entry["bytes"], entry["sha256"]], [size, digest.hexdigest()])
    with (folder / "judgments.jsonl").open("rb") as lines:
        root = merkle_root(line.removesuffix(b"\n") for line in lines)
    report.compare(
        "Merkle root of judgments.jsonl", "manifest.json merkle_root", manifest["merkle_root"], root
    )


def merkle_root(lines: Iterable[bytes]) -> str:
    """Return the root of RFC 6962: leaves ``SHA-256(0 + line)``, nodes ``SHA-256(1 + left + right)``."""
    complete: list[tuple[int, bytes]] = []  # (leaves, hash) of complete subtrees, the largest first
    for line in lines:
        size, digest = 1, hashlib.sha256(b"\x00" + line).digest()
        while complete and complete[-1][0] == size:
            size, digest = 2 * size, hashlib.sha256(b"\x01" + complete.pop()[1] + digest).digest()
        complete.append((size, digest))
    if not complete:
        return hashlib.sha256(b"").hexdigest()
    digest = complete.pop()[1]
    while complete:
        digest = hashlib.sha256(b"\x01" + complete.pop()[1] + digest).digest()
    return digest.hex()


# -- grades ------------------------------------------------------------------------------------------------------


def pair_of(row: Row) -> tuple[str, str]:
    return row["topic_id"], row["doc_id"]


def check_grades(folder: Path, manifest: Row, relevant_grade: int, report: Report) -> None:
    """Compare the grades with what the judgments say, and qrels, prels and their BEIR twin with the grades.

    items.jsonl and judgments.jsonl are in one order, topic by topic and document by document.
    """
    if manifest["aggregation"] not in RULES:
        report.not_recomputed[
            f"joint grades by {manifest['aggregation']}, taken as they stand in items.jsonl"
        ] += 1
    counted = (row for row in json_lines(folder / "judgments.jsonl") if row["counted"])
    groups = groupby(counted, pair_of)
    pair, rows = next(groups, (None, iter(())))
    graded: list[Graded] = []
    for item in json_lines(folder / "items.jsonl"):
        own: list[Row] = []
        if pair == pair_of(item):
            own = list(rows)
            pair, rows = next(groups, (None, iter(())))
        joint, grade = grades_of(own, item, manifest, relevant_grade)
        where = f"items.jsonl {item['topic_id']} {item['doc_id']}"
        report.compare("joint grades", f"{where} joint_grade", item["joint_grade"], joint)
        report.compare("grades", f"{where} grade", item["grade"], grade)
        if grade is not None:
            graded.append(
                (*pair_of(item), grade, item["inclusion_probability"] if item["drawn_in"] else None)
            )
    if pair is not None:
        report.different.append(
            f"judgments.jsonl: {' '.join(pair)} is not in items.jsonl, or not in its place"
        )
    listed = {entry["path"] for entry in manifest["files"]}
    for one in LINE_FILES:
        if one.name in listed:  # an older release need not have it
            check_lines(folder, one.name, one.lines(folder, graded), report)


def check_lines(folder: Path, name: str, lines: Iterable[str], report: Report) -> None:
    with (folder / name).open(encoding="utf-8") as there:
        for number, (one, other) in enumerate(zip_longest(there, lines), 1):
            recorded, again = (None if line is None else words_of(line) for line in (one, other))
            report.compare(f"lines of {name}", f"{name} line {number}", recorded, again)


# -- numbers -----------------------------------------------------------------------------------------------------


def check_chances(folder: Path, facts: Facts, bronze_score: str, report: Report) -> None:
    """Compare the chances of items to be judged, and to be open to audits; and the classes of their grades."""
    judged = [row for row in json_lines(folder / "items.jsonl") if row["in_frame"] and row["judged"]]
    everything, is_open = np.ones(len(judged), dtype=bool), facts.audit_probability > 0
    columns = {"chance_judged": everything}
    if is_open.any():
        columns["chance_open"] = is_open
    for name, members in columns.items():
        chance = draw_probability(facts, members)[facts.item]
        for row, number, is_member in zip(judged, chance.tolist(), members.tolist(), strict=True):
            where = f"items.jsonl {row['topic_id']} {row['doc_id']} {name}"
            report.compare("chances", where, row[name], number if is_member else None)
    if bronze_score not in CLASSES:
        report.not_recomputed[f"classes of grades by {bronze_score}, taken as they stand in items.jsonl"] += 1
        return
    given: list[list[int]] = [[] for _ in judged]
    for place, grade in zip(facts.label_item.tolist(), facts.label_grade.tolist(), strict=True):
        given[place].append(grade)
    for row, grades in zip(judged, given, strict=True):
        again = CLASSES[bronze_score](grades, facts.relevant_grade)
        where = f"items.jsonl {row['topic_id']} {row['doc_id']} bronze_class"
        report.compare("classes of grades", where, row["bronze_class"], again)


Answer = Callable[[int, int | None], Row]


def check_estimates(facts: Facts, estimates: Row, report: Report) -> None:
    """Compare every estimate of published runs, but for the methods that need more than is here."""
    runs = {run: place for place, run in enumerate(facts.runs)}
    for (measure, method), own in groupby(
        estimates["estimates"], lambda row: (row["measure"], row["method"])
    ):
        rows = list(own)
        published = [row for row in rows if {row["run"], row["run_b"] or row["run"]} <= runs.keys()]
        if len(published) < len(rows):
            report.not_recomputed["estimates of runs that are not in the release"] += len(rows) - len(
                published
            )
        computed = answers(facts, estimates, measure, method)
        if isinstance(computed, str):
            report.not_recomputed[computed] += len(published)
            continue
        for row in published:
            run, is_pair = runs[row["run"]], row["run_b"] is not None
            again = computed(run, runs[row["run_b"]] if is_pair else None)
            kind = estimates["measures"][measure]["kind"]
            told = {"kind": kind, "is_older": "claims" not in estimates}
            compare_estimate(row, again | told | beside(facts, kind, row, run), report)


def answers(facts: Facts, estimates: Row, measure: str, method: str) -> Answer | str:
    """Return the method's numbers of any run or pair, or why they are not computed again."""
    about, known = estimates["measures"][measure], estimates["measures"].values()
    if parts_of(measure).family not in MEASURES.get(about["kind"], {}):
        return f"estimates of {measure}, which this verifier does not know"
    if estimates.get("whole_topics"):
        return answers_of_topics(facts, estimates, measure, method)
    same_gains = (
        one["prediction"] for one in known if one["gains"] == about["gains"] and one.get("prediction")
    )
    prediction = about.get("prediction") or next(same_gains, None)
    if method not in METHODS:
        return f"estimates by {method}"
    forms = METHODS[method]
    if forms.needs_gold and (facts.gold_answer < 0).any():
        return "true values: gold answers are not in the release"
    if about["kind"] == "complete":
        if forms.gains is None:
            return not_served
        return CompleteMethod(facts, forms.gains, measure, over_topics=forms.over_topics)
    if about["kind"] == "linear":
        return linear_answers(facts, estimates, measure, forms)
    if forms.labels is None:
        return not_served
    if RATIOS[about["family"]].alone:
        return ValueOfSample(facts, about) if method == "naive" else not_served
    if facts.is_foreign:
        return not_served  # the ratio needs the pool
    if not forms.needs_gold and (
        prediction is None or estimates.get("seed") is None or measure.startswith("micro")
    ):
        return f"estimates of {measure}, a bootstrap that needs its seed and predictions"
    f = facts.predictions[prediction] if prediction else np.zeros(facts.topic.size)
    given = (facts, forms.labels, about, f, estimates.get("seed") or 0, forms.differences)
    return RatioMethod(*given, over_topics=forms.over_topics)


def linear_answers(facts: Facts, estimates: Row, measure: str, forms: MethodForms) -> Answer:
    """Return a method's numbers of a sum over documents, with what those that could not be judged may be worth."""
    name = estimates["measures"][measure]["prediction"]
    gold = facts.gold.get(name.removeprefix("prediction_")) if forms.predicts_gold else None
    weighed = WeightTable.of(facts, measure, facts.predictions[name] if gold is None else gold.before, gold)
    linear = forms.linear_of(estimates["draw"])
    if linear is None:
        return not_served
    of_targets, with_outside = linear(weighed), weighed.outside.with_outside
    is_old = OUTSIDE[0] not in estimates["estimates"][0]
    return lambda run, run_b: with_outside(of_targets(weighed.target(run, run_b)), run, run_b, is_old=is_old)


def not_served(run: int, run_b: int | None) -> Row:
    """Return the answer of a method that does not serve the measure."""
    return REFUSED


# -- confusion matrices ------------------------------------------------------------------------------------------


def check_confusions(folder: Path, facts: Facts, report: Report) -> None:
    """Compare the matrices of assessors, tiers, topics, thirds by popularity, and of the majority of grades."""
    recorded = {
        (row["scope"], row["key"]): row for row in json.loads((folder / "confusion.json").read_text("utf-8"))
    }
    for scope, key, counts, n_checks, n_audited in confusion_tables(facts):
        row = recorded.pop((scope, key), None)
        if row is None:
            report.different.append(f"confusion.json: no matrix of {scope} {key}")
            continue
        again: Row = dict(zip(("matrix", "low", "high"), with_intervals(counts), strict=True))
        again |= {"n_gold_checks": n_checks, "n_audited": n_audited} | accuracy_of(
            counts, row["accuracy_high"]
        )
        for name, value in again.items():
            report.compare(
                "numbers of matrices", f"confusion.json {scope} {key} {name}", row[name], value, NEAR_ZERO
            )
        # the counts are recorded to six decimals
        report.compare(
            "numbers of matrices",
            f"confusion.json {scope} {key} counts",
            row["counts"],
            counts.tolist(),
            1e-6,
        )
    for scope, number in Counter(scope for scope, _ in recorded).items():
        report.not_recomputed[f"matrices by {scope}"] += number
    if any(
        row["drift_p_value"] is not None for row in json.loads((folder / "confusion.json").read_text("utf-8"))
    ):
        report.not_recomputed["tests of drift: the times of judgments are not published"] += 1


# -- all of it ---------------------------------------------------------------------------------------------------


def verify(folder: Path) -> Report:
    """Return the report on a release, given as the folder that holds manifest.json."""
    report = Report()
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    check_files(folder, manifest, report)
    estimates = json.loads((folder / "estimates.json").read_text("utf-8"))
    check_grades(folder, manifest, estimates["scale"]["relevant_grade"], report)
    if estimates["computation"] is None:
        report.not_recomputed[f"there are no estimates: {estimates['refusal']}"] += 1
        return report
    facts = read_facts(folder, estimates)
    check_chances(folder, facts, estimates["computation"]["bronze_score"], report)
    looks, said = estimates.get("looks", []), estimates["computation"].get("look")
    again = looks[-1]["number"] if facts.declared_bound else None
    report.compare("declared look", "estimates.json computation look", said, again)
    check_predictions(facts, estimates, report)
    check_shares(facts, estimates, report)
    check_estimates(facts, estimates, report)
    check_confusions(folder, facts, report)
    if (folder / "comparisons.json").exists():  # older releases have none
        told = json.loads((folder / "comparisons.json").read_text("utf-8"))
        check_comparisons(told, estimates["estimates"], report)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--json", action="store_true", help="write the report as JSON")
    options = parser.parse_args()
    try:
        report = verify(options.folder)
    except (OSError, EOFError, LookupError, TypeError, ValueError) as error:
        report = Report(different=[f"the release cannot be read: {type(error).__name__}: {error}"])
    if options.json:
        print(json.dumps(vars(report), indent=2, ensure_ascii=False))
        return int(bool(report.different))
    for told, counted in (("same          ", report.same), ("not recomputed", report.not_recomputed)):
        for what, number in counted.items():
            print(f"{told}  {number:>9,}  {what}")
    for words in report.different[:MOST_NAMED]:
        print(f"DIFFERENT  {words}")
    if len(report.different) > MOST_NAMED:
        print(f"DIFFERENT  and {len(report.different) - MOST_NAMED:,} more (--json lists all)")
    print("NOT what it says" if report.different else "ok: everything that was compared is the same")
    return int(bool(report.different))


if __name__ == "__main__":
    sys.exit(main())
