"""`manage.py compare_methods FOLDER... --qrels NAME`: test methods of evaluation against full judgments."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.lowcost.evaluation_methods import EVALUATION_METHODS, ChosenMethod, chosen_method
from analytics.lowcost.method_trials import (
    CollectionTrials,
    OverallDifference,
    collection_trials,
    overall_difference,
)
from analytics.lowcost.run_folder import RunFolder, read_folder
from judging.textfiles import TrecFormatError

ALTERNATIVES = ("two-sided", "greater", "less")
MANUAL = "manual"  # a file beside the qrels that names the manual runs, one a line


class Command(BaseCommand):
    help = (
        "Compare methods of evaluation on random subsets of runs: Kendall's tau with the ranking by full judgments, "
        "and the difference of each method from the first, with an interval over topics. Works on files: no database."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        keys = ", ".join(
            one.key if one.number is None else f"{one.key}[:{one.number:g}]" for one in EVALUATION_METHODS
        )
        parser.add_argument("folder", nargs="+", type=Path, help="a collection: runs/ and the qrels file")
        parser.add_argument("--qrels", required=True, help="the name of the qrels file in each folder")
        parser.add_argument("--methods", required=True, help=f"the first is compared with the others: {keys}")
        parser.add_argument("--subsets", type=int, default=200, help="random subsets of each size (200)")
        parser.add_argument("--size", default="2,4,6,8,10", help="runs in a subset (2,4,6,8,10)")
        parser.add_argument("--alternative", choices=ALTERNATIVES, default=ALTERNATIVES[0])
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--output", choices=("table", "json"), default="table")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            methods = [chosen_method(text.strip()) for text in options["methods"].split(",")]
            sizes = _sizes(options["size"])
            rng = np.random.default_rng(_seed(options["seed"]))
            collections = [
                self._collection(folder, options, methods, sizes, rng) for folder in options["folder"]
            ]
            overall = [
                overall_difference([one.comparisons[place] for one in collections], options["alternative"])
                for place in range(len(methods) - 1)
            ]
        except (ValueError, TrecFormatError, OSError) as error:
            raise CommandError(str(error)) from error
        if options["output"] == "json":
            told = {
                "seed": options["seed"],
                "subsets": options["subsets"],
                "alternative": options["alternative"],
                "collections": [asdict(one) for one in collections],
                "overall": [asdict(one) for one in overall],
            }
            self.stdout.write(json.dumps(told, indent=2))
        else:
            self._print(methods, collections, overall, options["alternative"])

    def _collection(
        self,
        folder: Path,
        options: dict[str, Any],
        methods: Sequence[ChosenMethod],
        sizes: Sequence[int],
        rng: np.random.Generator,
    ) -> CollectionTrials:
        read = read_folder(folder, options["qrels"])
        return collection_trials(
            folder.name,
            read,
            methods,
            n_subsets=options["subsets"],
            sizes=sizes,
            rng=rng,
            is_manual=_is_manual(folder, read),
        )

    def _print(
        self,
        methods: Sequence[ChosenMethod],
        collections: Sequence[CollectionTrials],
        overall: Sequence[OverallDifference],
        alternative: str,
    ) -> None:
        for one in collections:
            self.stdout.write(f"{one.name}: {one.n_runs} runs, {one.n_topics} topics; mean Kendall's tau-b")
            heads = "".join(f"{size:>8}" for size in one.sizes)
            self.stdout.write(f"{'runs in a subset':<22}{heads}")
            for spelling, taus in one.taus.items():
                self.stdout.write(f"{spelling:<22}" + "".join(f"{tau:8.3f}" for tau in taus))
            for found in one.comparisons:
                self.stdout.write(
                    f"{found.method} less {methods[0].spelling}: {found.difference:+.3f} "
                    f"(95 % interval {found.low:+.3f} to {found.high:+.3f})"
                )
            self.stdout.write("")
        for total in overall:
            self.stdout.write(
                f"over {len(collections)} collection{'s' if len(collections) > 1 else ''}: {total.method} less "
                f"{methods[0].spelling}: {total.difference:+.3f} (95 % interval {total.low:+.3f} to {total.high:+.3f}; "
                f"p = {total.p_value:.2g}, {alternative})"
            )


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"sizes are whole numbers, separated by commas, got {text!r}") from None
    if len({*sizes}) < len(sizes):
        raise ValueError(f"each size stands once, got {text!r}")
    return sizes


def _seed(seed: int) -> int:
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    return seed


def _is_manual(folder: Path, read: RunFolder) -> list[bool]:
    """Return which runs the collection's file `manual` names; a name without a run is refused."""
    path = folder / MANUAL
    names = path.read_text().split() if path.exists() else []
    unknown = [name for name in names if name not in read.runs]
    if unknown:
        raise ValueError(f"{MANUAL} names a run that is not there: {unknown[0]!r}")
    return [run in names for run in read.runs]
