"""What a web process and a worker load before their first request: nothing that only some requests need."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
HEAVY = ("scipy.special", "scipy.stats", "scipy.optimize", "scipy.sparse", "altair", "vl_convert", "bm25s")
WEB = "import touchstone.urls"
WORKER = "import analytics.tasks, judging.tasks, sampling.tasks, touchstone.tasks"


def heavy_after(statements: str) -> set[str]:
    """Return which heavy modules a new process has loaded after Django is set up and these statements are done."""
    program = f"import django; django.setup(); {statements}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "touchstone.settings",
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "platform")]),
    }
    said = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return set(HEAVY) & set(json.loads(said.stdout))


@pytest.mark.parametrize("statements", [WEB, WORKER])
def test_a_process_starts_without_plotting_and_scipy(statements):
    assert heavy_after(statements) == set()


def test_what_a_number_needs_is_loaded_with_it():
    value = "from analytics.estimation.simultaneous import scipy; scipy.special.ndtri(.975)"
    assert heavy_after(f"{WEB}; {value}") == {"scipy.special"}
