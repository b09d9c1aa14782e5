"""The commands of `touchstone`: a row each, with its arguments, what it does, and how it ends."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from judging.formats import FORMATS, convert
from touchstone_ir import draws, evaluate_command, gate_command, numbers, plans, releases
from touchstone_ir.command_parts import (
    ALL_REFUSED,
    BAD_INPUT,
    DIFFERENT,
    DONE,
    OUT,
    PRINTING,
    Argument,
    argument,
    print_result,
    write_text,
)
from touchstone_ir.grade_maps import FLAG, OPTION, gain_map, grade_map
from touchstone_ir.kept_files import require_no_grades
from touchstone_ir.printing import csv_text
from touchstone_ir.readers import read_qrels, read_run
from touchstone_ir.results import result_from_json


@dataclass(frozen=True)
class Command:
    """A command: its name, a line of help, its arguments, and what it does, which returns the exit code."""

    name: str
    help: str
    arguments: tuple[Argument, ...]
    run: Callable[[argparse.Namespace], int]
    add: Callable[[argparse.ArgumentParser], None] | None = None
    codes: tuple[int, ...] = (DONE, BAD_INPUT)


# -- what commands share -----------------------------------------------------------------------------------------

MEASURES = argument(
    "--measure", "-m", nargs="+", required=True, metavar="M", help="as ir_measures spells it: P@10 nDCG@10"
)
ONE_MEASURE = argument("--measure", "-m", required=True, metavar="M", help="as ir_measures spells it: DCG@10")
RUNS = argument("runs", nargs="+", metavar="RUN", help="a run file of any format")
SEED = argument(
    "--seed", type=int, required=True, help="of the random numbers: the same seed, the same pairs"
)
EARLIER = argument("--earlier", metavar="CSV", help="what was drawn before with a smaller number")
GRADE_MAP = argument(FLAG, **OPTION)
EVIDENCE = (
    argument("--labels", metavar="FILE", help="a fallible judge's grades"),
    argument("--gold", metavar="FILE", help="grades that are right, with the probability of each"),
    argument("--draw", metavar="CSV", help="which pairs were drawn, where not all are labelled"),
    argument("--gold-chosen", choices=["uniform"], help="gold is a random part of the labelled pairs"),
    argument("--relevant", type=int, default=1, help="the lowest grade that counts as relevant (1)"),
    argument("--gains", default="", metavar="MAP", help="what grades are worth: 0=0,1=1,2=3 (each itself)"),
    argument("--claim", choices=["topics-like-these", "these-topics"], help="what intervals are about"),
    GRADE_MAP,
)


def _evidence(options: argparse.Namespace) -> dict[str, Any]:
    meanings = grade_map(options.grades)
    read = {
        name: None if path is None else read_qrels(path, grades=meanings)
        for name, path in (("labels", options.labels), ("gold", options.gold), ("draw", options.draw))
    }
    return {
        **read,
        "gold_chosen": options.gold_chosen,
        "relevant": options.relevant,
        "gains": gain_map(options.gains),
        "claim": options.claim,
    }


def _write_pairs(pairs: pl.DataFrame, out: str | None) -> int:
    """Write pairs with a column grade, which is then filled in; grades that are known already stay."""
    if out is not None:
        require_no_grades(Path(out))
    if "grade" not in pairs.columns:
        pairs = pairs.with_columns(grade=pl.lit(None, dtype=pl.Int64))
    write_text(csv_text(pairs).rstrip("\n"), out)
    n_new = int((pairs["batch"] == pairs["batch"].max()).sum()) if pairs.height else 0
    print(f"{pairs.height} pairs, {n_new} of them new", file=sys.stderr)
    return DONE


# -- what each does ----------------------------------------------------------------------------------------------


def _convert(options: argparse.Namespace) -> int:
    given = {"name": options.name, "requests": options.requests}
    written = convert(options.source, options.out, options.from_format, options.to_format, **given)
    print("\n".join(map(str, written)), file=sys.stderr)
    return DONE


def _design(options: argparse.Namespace) -> int:
    made = draws.design(
        read_run(*options.runs),
        options.measure,
        budget=options.budget,
        question=options.question,
        of=options.of,
        depth=options.depth,
    )
    made.to_json(options.out)
    told = made.forecast()
    half = "none" if told["half_width"] is None else f"{told['half_width']:.4f}"
    print(
        f"{told['expected_pairs']:.0f} of {told['n_pool']} pairs, expected half-width {half} (drawing alone)",
        file=sys.stderr,
    )
    return DONE


def _draw(options: argparse.Namespace) -> int:
    made = draws.design_from_json(Path(options.design).read_text(encoding="utf-8"))
    return _write_pairs(draws.draw(made, seed=options.seed, earlier=options.earlier), options.out)


def _audit(options: argparse.Namespace) -> int:
    meanings = grade_map(options.grades)
    found = draws.audit(
        read_run(*options.runs),
        options.measure,
        labels=read_qrels(options.labels, grades=meanings),
        n=options.n,
        seed=options.seed,
        strategy=options.strategy,
        draw=options.draw,
        earlier=options.earlier,
    )
    return _write_pairs(found, options.out)


def _estimate(options: argparse.Namespace) -> int:
    found = numbers.estimate(read_run(*options.runs), options.measure, **_evidence(options))
    return print_result(found, options)


def _compare(options: argparse.Namespace) -> int:
    runs = read_run(*options.runs)
    chosen = {"of": options.of, "against": options.against}
    return print_result(numbers.compare(runs, options.measure, **_evidence(options), **chosen), options)


def _rank(options: argparse.Namespace) -> int:
    found = numbers.rank(read_run(*options.runs), options.measure, **_evidence(options))
    return print_result(found, options)


def _plan(options: argparse.Namespace) -> int:
    result = result_from_json(Path(options.result).read_text(encoding="utf-8"))
    found = plans.plan(
        result,
        half_width=options.half_width,
        budget=options.budget,
        cost_label=options.cost_label,
        cost_gold=options.cost_gold,
    )
    write_text(found.to_json() if options.output == "json" else str(found), options.out)
    return DONE if (found.frame["refusal"] == "").any() else ALL_REFUSED


def _verify(options: argparse.Namespace) -> int:
    found = releases.verify(options.release)
    print(found)
    return DONE if found.is_right else DIFFERENT


def _describe(options: argparse.Namespace) -> int:
    from touchstone_ir.description import description_json

    write_text(description_json(), options.out)
    return DONE


KEYS = [one.key for one in FORMATS]
WRITTEN = [one.key for one in FORMATS if one.write is not None]
COMMANDS: tuple[Command, ...] = (
    Command(
        "convert",
        "Write a file of runs or judgments in another format.",
        (
            argument("source", metavar="FILE", help="a file, or ir_datasets:<id>"),
            argument("--out", "-o", required=True, metavar="FILE", help="the new file"),
            argument(
                "--from", dest="from_format", choices=KEYS, metavar="FORMAT", help="default: recognised"
            ),
            argument(
                "--to", dest="to_format", choices=WRITTEN, metavar="FORMAT", help="default: by the ending"
            ),
            argument("--name", help="of the run, where a file holds several or none"),
            argument(
                "--requests",
                metavar="FILE",
                help="what umbrela was asked: its judgments name no topic and document",
            ),
        ),
        _convert,
    ),
    Command(
        "design",
        "Say with which probability each pooled pair is to be drawn, to answer a question about runs.",
        (
            RUNS,
            ONE_MEASURE,
            argument("--budget", type=int, required=True, help="pairs to be judged, in expectation"),
            argument("--question", default="pair", choices=["pair", "system", "baseline", "ranking", "pool"]),
            argument("--of", nargs="+", metavar="NAME", help="the runs in question (default: all)"),
            argument("--depth", type=int, help="of the pool (default: the measure's cutoff)"),
            argument("--out", "-o", required=True, metavar="JSON", help="the design"),
        ),
        _design,
    ),
    Command(
        "draw",
        "Draw the pairs of a design: a CSV whose column grade is to be filled in.",
        (argument("design", metavar="DESIGN.json"), SEED, EARLIER, OUT),
        _draw,
    ),
    Command(
        "audit",
        "Choose the labelled pairs that an expert should check: a CSV whose column grade is to be filled in.",
        (
            RUNS,
            ONE_MEASURE,
            argument("--labels", required=True, metavar="FILE", help="a fallible judge's grades"),
            argument("--n", "-n", type=int, required=True, help="pairs to be checked, in expectation"),
            SEED,
            argument("--strategy", default="influence", help="of the platform's audits (influence)"),
            argument("--draw", metavar="CSV", help="which pairs were drawn, where not all are labelled"),
            EARLIER,
            GRADE_MAP,
            OUT,
        ),
        _audit,
    ),
    Command(
        "estimate",
        "The value of every run, with intervals.",
        (RUNS, MEASURES, *EVIDENCE, *PRINTING),
        _estimate,
        codes=(DONE, BAD_INPUT, ALL_REFUSED),
    ),
    Command(
        "compare",
        "The difference of every pair of runs, with intervals and p-values.",
        (
            RUNS,
            MEASURES,
            *EVIDENCE,
            argument("--of", metavar="NAME", help="only pairs with this run first"),
            argument("--against", metavar="NAME", help="only pairs with this run second"),
            *PRINTING,
        ),
        _compare,
        codes=(DONE, BAD_INPUT, ALL_REFUSED),
    ),
    Command(
        "rank",
        "The runs by their value, with the ranks that each may have.",
        (RUNS, ONE_MEASURE, *EVIDENCE, *PRINTING),
        _rank,
        codes=(DONE, BAD_INPUT, ALL_REFUSED),
    ),
    Command(
        "evaluate",
        evaluate_command.DESCRIPTION,
        (),
        evaluate_command.run,
        evaluate_command.add_arguments,
        codes=(DONE, BAD_INPUT, ALL_REFUSED),
    ),
    Command(
        "plan",
        "What labels and gold to buy next, by a result that was written as JSON.",
        (
            argument("result", metavar="RESULT.json"),
            argument("--half-width", type=float, help="half of the 95 %% interval to reach"),
            argument("--budget", type=float, help="to be spent, in the unit of the costs"),
            argument("--cost-label", type=float, default=1.0, help="of one more label (1)"),
            argument("--cost-gold", type=float, default=10.0, help="of one more gold label (10)"),
            argument("--output", choices=["table", "json"], default="table"),
            OUT,
        ),
        _plan,
        codes=(DONE, BAD_INPUT, ALL_REFUSED),
    ),
    Command(
        "verify",
        "Is a release what it says? Every file, and every number computed again.",
        (argument("release", metavar="RELEASE", help="its zip or its folder"),),
        _verify,
        codes=(DONE, DIFFERENT, BAD_INPUT),
    ),
    Command(
        "gate",
        gate_command.DESCRIPTION,
        (),
        gate_command.run,
        gate_command.add_arguments,
        codes=(0, 1, 2, 3, 4),
    ),
    Command("describe", "All commands, formats and measures, as one JSON document.", (OUT,), _describe),
)
