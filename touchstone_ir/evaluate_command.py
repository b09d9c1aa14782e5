"""`touchstone evaluate`, and `manage.py evaluate`: what a release, or somebody else's sample, tells of runs."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from analytics.estimation.claims import CLAIMS
from analytics.lowcost.statap import EMPTY_TOPICS
from judging.samples import METHOD_CODES
from sampling.measures.scoring import known_measures
from touchstone_ir.columns import InputRefused
from touchstone_ir.command_parts import PRINTING, Argument, add_all, argument, print_result
from touchstone_ir.printing import result_text, topic_lines
from touchstone_ir.releases import evaluate, run_names
from touchstone_ir.results import Result
from touchstone_ir.sample_files import SAMPLE_FORMATS, evaluate_on_sample

DESCRIPTION = (
    "Say what a release's judgments tell of runs: by its qrels, estimated from the sample, and corrected by the audit. "
    "With --format, what somebody else's sample of judgments tells of runs. Works on files: no database, no server."
)
MOST_PLACES = 17


def _arguments() -> tuple[Argument, ...]:
    samples = ", ".join(f"{one.key} ({' '.join(one.examples)})" for one in SAMPLE_FORMATS)
    measures = " ".join(known_measures())
    return (
        argument(
            "release",
            metavar="RELEASE",
            help="a release: its zip, its folder, or <campaign>/<version>; with --format, a file of judgments",
        ),
        argument(
            "names",
            nargs="+",
            metavar="RUN ... M",
            help="runs, files of any format or runs that the release holds, and then measures, as ir_measures spells "
            f"them: {measures}",
        ),
        argument("--measure", "-m", nargs="+", default=[], metavar="M", help="further measures"),
        argument(
            "--format",
            choices=[one.key for one in SAMPLE_FORMATS],
            help=f"of the file of judgments: {samples}",
        ),
        argument(
            "--method-codes",
            choices=METHOD_CODES,
            default=METHOD_CODES[0],
            help="of prels. track: methods 0 and 2 are certain, and topics of method 0 alone are left out, as the "
            "Million Query track's program has it (default: recorded, the probabilities as they stand)",
        ),
        argument(
            "--empty-topics",
            choices=EMPTY_TOPICS,
            default=EMPTY_TOPICS[0],
            help="topics without a sampled relevant document, with --format: count 0 in the mean (default) or are left "
            "out",
        ),
        argument("--by-topic", "-q", action="store_true", help="the values of every topic as well"),
        argument("--no-summary", "-n", action="store_true", help="with -q: only those"),
        argument("--places", "-p", type=int, default=4, metavar="N", help="decimals of the table (4)"),
        argument(
            "--against",
            action="append",
            metavar="RUN",
            help="compare the runs with this one: a run that the release holds, or a file; may be repeated",
        ),
        argument(
            "--claim",
            choices=[claim.key for claim in CLAIMS],
            help="with --against: what is claimed of a difference (default: topics like these)",
        ),
        argument(
            "--family",
            default="",
            help="with --against: all, baseline:<run> or runs:<run>,<run> of the runs that are named; by default the "
            "family that the release declares",
        ),
        *PRINTING,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_all(parser, _arguments())


def run(options: argparse.Namespace, echo: Callable[[str], object] = print) -> int:
    """Evaluate, write the result, and return the exit code. OSError or ValueError, which say what is wrong."""
    if options.no_summary and not options.by_topic:
        raise InputRefused("--no-summary leaves nothing to be said without --by-topic")
    if (options.claim or options.family) and not options.against:
        raise InputRefused("--claim and --family are about differences: name a run with --against")
    if options.against and options.format is not None:
        raise InputRefused("--against compares runs in a release: leave out --format")
    if options.by_topic and options.against:
        raise InputRefused("--by-topic is of runs, not of differences: leave out --against")
    found = _on_release(options) if options.format is None else _on_sample(options)
    table = partial(
        _table, places=max(0, min(MOST_PLACES, options.places)), has_summary=not options.no_summary
    )
    return print_result(found, options, table, echo)


def _on_release(options: argparse.Namespace) -> Result:
    known = run_names(options.release)
    runs, measures = _split(options.names, lambda name: Path(name).is_file() or name in known)
    measures += options.measure
    if not runs:
        raise InputRefused(
            f"name at least one run, and then at least one measure: {measures[0]} is no file, and no run of the "
            f"release, which has {', '.join(known)}"
        )
    if not measures:
        raise InputRefused("name at least one measure after the runs")
    return evaluate(
        options.release,
        runs,
        measures,
        against=options.against or None,
        claim=options.claim,
        family=options.family,
        by_topic=options.by_topic,
    )


def _on_sample(options: argparse.Namespace) -> Result:
    runs, measures = _split(options.names, lambda name: Path(name).is_file())
    return evaluate_on_sample(
        options.release,
        runs,
        [*measures, *options.measure],
        format=options.format,
        method_codes=options.method_codes,
        empty_topics=options.empty_topics,
        by_topic=options.by_topic,
    )


def _split(names: Sequence[str], is_run: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Return runs and measures, which stand behind them."""
    n_runs = next((place for place, name in enumerate(names) if not is_run(name)), len(names))
    return [*names[:n_runs]], [*names[n_runs:]]


def _table(result: Result, places: int, *, has_summary: bool) -> str:
    """Return the values of topics, where there are some, and the table below."""
    parts = []
    if result.topics is not None:
        topics = result.topics
        is_of_release = "qrels" in topics.columns
        if is_of_release and topics["run"].n_unique() == 1:  # as it was when there was but one
            topics = topics.drop("run")
        parts.append(topic_lines(topics, places))
    if has_summary:
        parts.append(result_text(result, places, is_whole=True))
    return "\n".join(parts)
