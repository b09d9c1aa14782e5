"""benchmarks/faults.py in small: PostgreSQL is killed three times while four clients judge."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def measure(part: str, kills: int) -> dict:
    options = [f"--part={part}", "--seconds=60", f"--kills={kills}", "--clients=4"]
    child = subprocess.run(
        [sys.executable, str(BENCHMARKS / "faults.py"), *options], capture_output=True, text=True, timeout=120
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


@pytest.mark.slow
def test_no_acknowledged_judgment_is_lost_or_doubled_when_postgresql_is_killed():
    result = measure("services", kills=3)
    assert result["kills"] == {"postgres": 3}
    assert result["acknowledged"] > 30
    assert result["faults_seen_by_clients"]
    for fault in ("lost", "wrong", "doubled", "phantom", "items_over_k", "slots_disagreeing"):
        assert result[fault] == 0, result
    assert result["refusals"] == {}


@pytest.mark.slow
def test_the_same_measurement_sees_judgments_that_were_acknowledged_too_early():
    result = measure("control", kills=2)
    assert result["synchronous_commit"] == "off"
    assert result["lost"] > 0


def test_the_pause_of_a_kill_is_the_longest_silence_until_the_next(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from parts.assessors import longest_pauses

    kills = [(10.0, "web"), (20.0, "redis"), (30.0, "web")]
    # Silences: 10 to 13 (3), 13 to 20 (7) | 20 to 21, 21 to 30 (9) | 30 to 32 (2), 32 to 33 (1).
    assert longest_pauses(kills, [9.0, 13.0, 21.0, 32.0, 33.0]) == {"web": 7.0, "redis": 9.0}
