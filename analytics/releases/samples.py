"""A release as evaluations take it: opened by any of its names, its sample, and measures on its scale."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analytics.releases.reading import OpenRelease, ReleaseUnreadable, find_release, open_release
from analytics.releases.sampled import SampledRelease
from analytics.releases.verify_facts import FACT_FILES, Facts, read_facts
from sampling.measures.scoring import ScaledMeasure, measure_on_scale


class UnknownMeasure(ValueError):
    """A measure that the release cannot be asked."""


def open_named(name: str) -> OpenRelease:
    """Return the release of a name: a zip, a folder, or <campaign>/<version>. `ReleaseUnreadable` where it is none."""
    path = Path(name)
    slug, slash, version = name.rpartition("/")
    if not path.exists() and slash and version.replace(".", "").isdigit():
        return find_release(slug.removeprefix("touchstone/"), version)
    return open_release(path)


def sample_of(
    release: OpenRelease, names: Sequence[str]
) -> tuple[SampledRelease, dict[str, Any], list[ScaledMeasure]]:
    """Return the sample of a release, what estimates.json says, and the measures of these names."""
    estimates = release.value("estimates.json")
    if estimates.get("computation") is None:
        raise ReleaseUnreadable(
            f"{release.path}: nothing can be estimated from this release: {estimates.get('refusal')}"
        )
    try:
        scale = estimates["scale"]
        gains = [grade["gain"] for grade in scale["grades"]]
        try:
            measures = [
                measure_on_scale(name, gains, scale["relevant_grade"]) for name in dict.fromkeys(names)
            ]
        except ValueError as error:
            raise UnknownMeasure(str(error)) from error
        sampled = SampledRelease.of(_facts(release, estimates), estimates.get("seed"))
    except (KeyError, TypeError, IndexError) as error:
        raise ReleaseUnreadable(
            f"{release.path}: the release is damaged ({type(error).__name__}: {error})"
        ) from error
    return sampled, estimates, measures


def _facts(release: OpenRelease, estimates: dict[str, Any]) -> Facts:
    with release.on_disk(FACT_FILES) as folder:
        try:
            return read_facts(folder, estimates, with_runs=False)
        except (OSError, ValueError) as error:
            raise ReleaseUnreadable(f"{release.path}: the release is damaged ({error})") from error
