"""The peers' process of benchmarks/peers.py: samples in, intervals out, a line of JSON each; no file of ours is used.

The first line says which version of each package is there. Every method is the package's own call, with its defaults,
at 95 %, on the mean of differences between two runs.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PACKAGES = {"truescore": "truescore", "ppi-python": "ppi_py", "glide-py": "glide.estimators"}


class Rows:
    """The rows of a sample: values of either run by the judge, and by humans where they are labelled."""

    def __init__(self, sample: dict[str, Any]) -> None:
        self.judge = np.array(sample["judge"], dtype=np.float64)
        self.gold = np.array(sample["gold"], dtype=np.float64)
        self.labelled = np.array(sample["labelled"], dtype=np.int64)
        self.group = np.array(sample["group"]) if "group" in sample else None
        self.probability = np.array(sample["probability"]) if "probability" in sample else None

    @property
    def proxy(self) -> Floats:
        """Return the difference of all rows by the judge."""
        return np.asarray(self.judge[0] - self.judge[1])

    @property
    def truth(self) -> Floats:
        """Return the difference by humans, NaN where nobody looked."""
        found = np.full(self.judge.shape[1], np.nan)
        found[self.labelled] = self.gold[0] - self.gold[1]
        return found

    def by_group(self) -> "tuple[Floats, Floats]":
        """Return proxy and truth as means of groups."""
        group, size = self.group, np.bincount(self.group)
        return np.bincount(group, self.proxy) / size, np.bincount(group, self.truth) / size


Bounds = tuple[float, float]


def truescore_interval(rows: Rows, clusters: Any = None) -> Bounds:
    from truescore import ppi_compare

    found = ppi_compare(*rows.judge, *rows.gold, rows.labelled, alpha=0.05, clusters=clusters)
    return found.low, found.high


def truescore_clustered(rows: Rows) -> Bounds:
    return truescore_interval(rows, rows.group)


def ppi_python_interval(rows: Rows) -> Bounds:
    return _ppi_python(rows.proxy, rows.truth)


def ppi_python_of_groups(rows: Rows) -> Bounds:
    return _ppi_python(*rows.by_group())


def _ppi_python(proxy: Floats, truth: Floats) -> Bounds:
    from ppi_py import ppi_mean_ci

    has_truth = ~np.isnan(truth)
    low, high = ppi_mean_ci(truth[has_truth], proxy[has_truth], proxy[~has_truth], alpha=0.05)
    return float(low.item()), float(high.item())


def glide_interval(rows: Rows) -> Bounds:
    from glide.estimators import PPIMeanEstimator

    return _glide(PPIMeanEstimator().estimate(rows.truth, rows.proxy))


def glide_stratified(rows: Rows) -> Bounds:
    from glide.estimators import StratifiedPPIMeanEstimator

    return _glide(StratifiedPPIMeanEstimator().estimate(rows.truth, rows.proxy, rows.group))


def glide_active(rows: Rows) -> Bounds:
    from glide.estimators import ASIMeanEstimator

    return _glide(ASIMeanEstimator().estimate(rows.truth, rows.proxy, rows.probability))


def glide_clustered(rows: Rows) -> Bounds:
    from glide.estimators import ClusteredPPIMeanEstimator

    return _glide(ClusteredPPIMeanEstimator().estimate(rows.truth, rows.proxy, rows.group))


def _glide(result: Any) -> Bounds:
    return result.confidence_interval.lower_bound, result.confidence_interval.upper_bound


# Of each method: package, sample, call.
METHODS: dict[str, tuple[str, str, Callable[[Rows], Bounds]]] = {
    "truescore, documents": ("truescore", "documents", truescore_interval),
    "truescore, ranks": ("truescore", "ranks", truescore_interval),
    "truescore, whole topics": ("truescore", "topics", truescore_clustered),
    "PPI++ of ppi-python, documents": ("ppi-python", "documents", ppi_python_interval),
    "PPI++ of ppi-python, whole topics": ("ppi-python", "topics", ppi_python_of_groups),
    "GLIDE, PPI++, documents": ("glide-py", "documents", glide_interval),
    "GLIDE, stratified by run, documents": ("glide-py", "shares", glide_stratified),
    "GLIDE, active inference, our audit": ("glide-py", "drawn", glide_active),
    "GLIDE, clustered, whole topics": ("glide-py", "topics", glide_clustered),
}


def package_versions() -> dict[str, str | None]:
    """Return the version of every package that can be imported, None of the others."""
    found: dict[str, str | None] = {}
    for name, module in PACKAGES.items():
        try:
            import_module(module)
            found[name] = version(name)
        except (ImportError, PackageNotFoundError):
            found[name] = None
    return found


def answers(samples: dict[str, dict[str, Any]], there: dict[str, str | None]) -> dict[str, dict[str, Any]]:
    """Return the interval of every method whose package is there, or its refusal, and the seconds of its call."""
    found: dict[str, dict[str, Any]] = {}
    for name, (package, key, interval) in METHODS.items():
        if there[package] is None:
            continue
        sample = samples[key]
        rows = Rows(sample)
        answer: dict[str, Any] = {"n_labels": sample["n_labels"]}
        began = time.perf_counter()
        try:
            low, high = (float(bound) * sample["scale"] for bound in interval(rows))
            answer |= {"low": low, "high": high}
        except ValueError as refusal:
            answer["refusal"] = str(refusal)
        found[name] = answer | {"seconds": time.perf_counter() - began}
    return found


def main() -> None:
    there = package_versions()
    print(json.dumps({"python": sys.version.split()[0], "packages": there}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answers(json.loads(line), there)), flush=True)


if __name__ == "__main__":
    main()
