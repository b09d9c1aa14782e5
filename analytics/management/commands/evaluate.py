import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.estimation.claims import CLAIMS, claim_of
from analytics.estimation.estimate import Estimate, Refusal
from analytics.lowcost.statap import EMPTY_TOPICS
from analytics.management.difference_reports import difference_json, difference_table
from analytics.management.sampled_evaluation import (
    SAMPLE_FORMATS,
    SampleOptions,
    evaluate_runs,
    ranking_of,
    sample_format,
)
from analytics.releases.comparing import DifferenceOptions, compare_runs, rankings_of_release
from analytics.releases.evaluating import evaluate
from analytics.releases.evaluation import Evaluation, ValueAlone
from analytics.releases.reading import OpenRelease, ReleaseUnreadable
from analytics.releases.samples import UnknownMeasure, open_named, sample_of
from judging.runs import read_columns
from judging.samples import METHOD_CODES
from judging.textfiles import TrecFormatError
from sampling.measures.scoring import (
    RankedRun,
    index_qrels,
    known_measures,
    ranked_run,
)

COLUMNS = (
    "measure",
    "qrels",
    "estimate, 95 % confidence interval",
    "corrected, 95 % confidence interval",
    "topics as a sample",
    "Judged@k",
    "gold",
)
CUT_OFF = "Values and ends of intervals end at the range of the measure; means over topics were made before."


@dataclass(frozen=True)
class Run:
    """A run file: its tag, by topic its documents, best first, and the same as the evaluator takes it."""

    tag: str
    ranking: dict[str, list[str]]
    ranked: RankedRun


class Command(BaseCommand):
    help = (
        "Say what a release's judgments tell of a run: by its qrels, estimated from the sample, and corrected by the "
        "audit. With --format, what somebody else's sample of judgments tells of runs. Works on files: no database, no "
        "server."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "release",
            help="a release: its zip, its folder, or <campaign>/<version>; with --format, a file of judgments",
        )
        parser.add_argument(
            "run",
            help="a run file, plain or gzip: topic Q0 document rank score tag; with --format, further ones too",
        )
        parser.add_argument(
            "measures",
            nargs="+",
            metavar="measure",
            help=f"as ir_measures spells it: {' '.join(known_measures())}",
        )
        samples = ", ".join(f"{one.key} ({' '.join(one.examples)})" for one in SAMPLE_FORMATS)
        parser.add_argument(
            "--format",
            choices=[one.key for one in SAMPLE_FORMATS],
            help=f"of the file of judgments: {samples}",
        )
        parser.add_argument(
            "--method-codes",
            choices=METHOD_CODES,
            default=METHOD_CODES[0],
            help="of prels. track: methods 0 and 2 are certain, and topics of method 0 alone are left out, as the "
            "Million Query track's program has it (default: recorded, the probabilities as they stand)",
        )
        parser.add_argument(
            "--empty-topics",
            choices=EMPTY_TOPICS,
            default=EMPTY_TOPICS[0],
            help="topics without a sampled relevant document, with --format: count 0 in the mean (default) or are left "
            "out",
        )
        parser.add_argument("-q", "--by-topic", action="store_true", help="the values of every topic as well")
        parser.add_argument("-n", "--no-summary", action="store_true", help="with -q: only those")
        parser.add_argument(
            "-p", "--places", type=int, default=4, metavar="N", help="decimals of the table (4)"
        )
        parser.add_argument("--output", choices=["table", "json"], default="table")
        parser.add_argument(
            "--against",
            action="append",
            default=[],
            metavar="RUN_OR_FILE",
            help="compare the runs with this one: a run that the release holds, or a file; may be repeated",
        )
        parser.add_argument(
            "--claim",
            choices=[claim.key for claim in CLAIMS],
            default="",
            help="with --against: what is claimed of a difference (default: topics like these)",
        )
        parser.add_argument(
            "--family",
            default="",
            help="with --against: all, baseline:<run> or runs:<run>,<run> of the runs that are named; by default the "
            "family that the release declares",
        )

    def handle(self, *, release: str, run: str, measures: list[str], output: str, **options: Any) -> None:
        if options["no_summary"] and not options["by_topic"]:
            raise CommandError("--no-summary leaves nothing to be said without --by-topic")
        places = max(0, min(17, options["places"]))
        if (options["claim"] or options["family"]) and not options["against"]:
            raise CommandError("--claim and --family are about differences: name a run with --against")
        if options["against"] and options["format"] is not None:
            raise CommandError("--against compares runs in a release: leave out --format")
        if options["format"] is not None:
            self.stdout.write(_evaluate_sample(release, [run, *measures], output, places, options))
            return
        try:
            with open_named(release) as opened:
                if options["against"]:
                    self.stdout.write(_compare(opened, [run, *measures], output, places, options))
                    return
                report = _evaluate(opened, _read(Path(run)), measures)
                about = {
                    "slug": opened.slug,
                    "version": opened.version,
                    "title": opened.manifest.get("title", ""),
                }
        except (ReleaseUnreadable, TrecFormatError, UnknownMeasure) as error:
            raise CommandError(str(error)) from error
        if output == "json":
            results = [_json(one, by_topic=options["by_topic"]) for one in report.results]
            output_fields = {
                "release": about,
                "run": report.tag,
                "n_topics": report.n_topics,
                "measures": results,
            }
            self.stdout.write(json.dumps(output_fields, ensure_ascii=False, indent=2))
            return
        if options["by_topic"]:
            self.stdout.write(_by_topic(report.results, places))
        if not options["no_summary"]:
            self.stdout.write(_table(about, report, places))


def _evaluate_sample(file: str, names: list[str], output: str, places: int, options: dict[str, Any]) -> str:
    chosen = SampleOptions(
        options["method_codes"],
        options["empty_topics"],
        options["by_topic"],
        not options["no_summary"],
        places,
        output,
    )
    try:
        return evaluate_runs(Path(file), names, sample_format(options["format"]), chosen)
    except TrecFormatError as error:
        raise CommandError(str(error)) from error


def _compare(
    release: OpenRelease, names: list[str], output: str, places: int, options: dict[str, Any]
) -> str:
    """Return the differences of the runs that are named from those of --against, as text."""
    known = release.runs()
    n_runs = next(
        (place for place, name in enumerate(names) if not (Path(name).is_file() or name in known)), len(names)
    )
    if n_runs in (0, len(names)):
        raise CommandError(
            "name at least one run, a file or one of the release, and then at least one measure"
        )
    runs: dict[str, dict[str, list[str]]] = {}
    for name in (*names[:n_runs], *options["against"]):
        run = None if Path(name).is_file() or name not in known else rankings_of_release(release, name)
        tag, ranking = (name, run) if run is not None else _tag_and_ranking(Path(name))
        if tag in runs:
            raise CommandError(f"the run {tag} is named twice: a run against itself is no comparison")
        runs[tag] = ranking
    sampled, about, measures = sample_of(release, names[n_runs:])
    claim = claim_of(options["claim"] or CLAIMS[0].key)
    chosen = DifferenceOptions(claim, options["family"])
    against = list(runs)[n_runs:]
    try:
        found = compare_runs(release, sampled, about["measures"], measures, runs, against, chosen)
    except ValueError as fault:
        raise CommandError(str(fault)) from fault
    if output == "json":
        told = {"slug": release.slug, "version": release.version}
        fields = {"release": told, "claim": claim.key, "comparisons": difference_json(found)}
        return json.dumps(fields, ensure_ascii=False, indent=2)
    return difference_table(found, places)


def _tag_and_ranking(path: Path) -> tuple[str, dict[str, list[str]]]:
    run = _read(path)
    return run.tag, run.ranking


@dataclass(frozen=True)
class _RunReport:
    tag: str
    n_topics: int
    results: list[Evaluation]


def _read(path: Path) -> Run:
    """Return the run. TrecFormatError says where it is wrong."""
    try:
        columns = read_columns(path, str(path))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    return Run(columns.run_tag, ranking_of(columns), ranked_run(columns))


def _evaluate(release: OpenRelease, run: Run, names: list[str]) -> _RunReport:
    sampled, estimates, measures = sample_of(release, names)
    try:
        judged = index_qrels(release.qrels())
    except ValueError as error:
        raise ReleaseUnreadable(f"{release.path}: the release is damaged ({error})") from error
    results = evaluate(sampled, estimates["measures"], measures, run.ranking, run.ranked, judged)
    return _RunReport(run.tag, len(sampled.facts.topics), results)


# -- what is written ---------------------------------------------------------------------------------------------


def _json(one: Evaluation, *, by_topic: bool) -> dict[str, Any]:
    fields = one.as_json()
    if not by_topic:
        del fields["by_topic"]
    return fields


def _interval(result: Estimate | Refusal | ValueAlone, places: int, sign: str = "-") -> str:
    if isinstance(result, ValueAlone):
        return f"{result.value:.{places}f}"
    if isinstance(result, Refusal):
        return sign
    return f"{result.value:.{places}f} [{result.low:.{places}f}, {result.high:.{places}f}]"


def _share(share: float | None) -> str:
    """Return a share in percent.

    >>> _share(0.25), _share(None)
    ('25 %', '-')
    """
    return "-" if share is None else f"{100 * share:.0f} %"


def _by_topic(results: Sequence[Evaluation], places: int) -> str:
    """Return a line a topic and measure: topic, measure, value by the qrels, estimate, corrected."""
    lines = ["\t".join(("topic", "measure", "qrels", "estimate", "corrected"))]
    for one in results:
        for topic, values in one.within_range().by_topic.items():
            known = (values.get(name) for name in ("qrels", "estimate", "corrected"))
            shown = ("-" if value is None else f"{value:.{places}f}" for value in known)
            lines.append("\t".join((topic, one.measure, *shown)))
    return "\n".join(lines)


def _table(about: dict[str, str], report: _RunReport, places: int) -> str:
    shown = [one.within_range() for one in report.results]
    rows = [COLUMNS]
    for one in shown:
        best = one.corrected_over_topics if isinstance(one.corrected, Estimate) else one.estimate_over_topics
        rows.append(
            (
                one.measure,
                f"{one.qrels:.{places}f}",
                _interval(one.estimate, places),
                _interval(one.corrected, places),
                _interval(best, places),
                _share(one.judged_share),
                _share(one.gold_share),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"{about['title']} ({about['slug']} {about['version']}), run {report.tag}, {report.n_topics} topics",
        "",
    ]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    notes = _group_notes(pair for one in report.results for pair in _notes(one))
    if any(one != before for one, before in zip(shown, report.results, strict=True)):
        notes.append(CUT_OFF)
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _group_notes(notes: Iterable[tuple[str, str]]) -> list[str]:
    """Return one line for each thing to say, with all that it is said of before it."""
    of: dict[str, list[str]] = {}
    for what, words in notes:
        of.setdefault(words, []).append(what)
    return [f"{', '.join(whats)}: {words}" for words, whats in of.items()]


def _notes(one: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield why a number is missing, and what is to be said of one that is there; what that is comes first."""
    if one.ir_measures and one.ir_measures != one.measure:
        yield f"{one.measure} of the qrels", f"in ir_measures {one.ir_measures}"
    if isinstance(one.estimate, Refusal) and one.estimate == one.corrected:
        yield one.measure, one.estimate.reason
        return
    for name, result in (("estimate", one.estimate), ("corrected", one.corrected)):
        if isinstance(result, ValueAlone):
            yield f"{one.measure} {name}", result.no_interval
            continue
        words = result.reason if isinstance(result, Refusal) else result.warning
        for part in filter(None, words.split("; ") if isinstance(result, Estimate) else [words]):
            yield f"{one.measure} {name}", part
