"""A client made by openapi-python-client from the API's description: it warns of nothing, and walks all the way."""

import json
import os
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from textwrap import dedent

import pytest
from live import key_of, stack
from small_release import unpacked
from tool_files import tool

from analytics.releases.reading import open_release
from analytics.releases.verify import verify
from touchstone.api.schema import description

PAGE = Path(__file__).parents[3] / "docs/api.md"
N_OPERATIONS = sum(len(methods) for methods in description()["paths"].values())


def example_of_page() -> str:
    """Return the first lines of use that docs/api.md shows."""
    text = PAGE.read_text().partition("    from touchstone_client import")
    lines = takewhile(lambda line: not line or line.startswith("    "), "".join(text[1:]).splitlines())
    return dedent("\n".join(lines))


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The folder of the package `touchstone_client`, and what its generator said."""
    tool("openapi_python_client")
    folder = tmp_path_factory.mktemp("generated")
    (folder / "schema.json").write_text(json.dumps(description()))
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "schema.json"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # it runs ruff over what it has written
    ran = subprocess.run(
        [*command, "--meta", "none", "--output-path", "touchstone_client", "--fail-on-warning"],
        cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    return folder, ran


def test_its_generator_warns_of_nothing_and_leaves_nothing_out(generated):
    folder, ran = generated
    assert (ran.returncode, "WARNING" in ran.stdout + ran.stderr) == (0, False), ran.stdout + ran.stderr
    modules = [one for one in folder.glob("touchstone_client/api/*/*.py") if one.name != "__init__.py"]
    assert len(modules) == N_OPERATIONS > 170


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_it_walks_from_a_collection_to_a_release(generated, child_environment, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(generated[0]))
    import generated_acts
    import generated_sweep
    import generated_walk

    keys = {name: key_of(f"walking-{name}", "assessor") for name in ("machine", "person", "gold")}
    keys["manager"] = key_of("walking-manager", "manager")
    environment = {**child_environment, "WEBHOOK_HOSTS": "https://hooks.example"}
    with stack(environment) as address, generated_walk.walkers(address, keys) as walkers:
        manager, machine, person, gold = (walkers[one] for one in ("manager", "machine", "person", "gold"))
        monkeypatch.chdir(tmp_path)
        Path("topics.tsv").write_text("t1\tWhich year is meant?\n")
        exec(example_of_page(), found := {"url": address, "key": keys["manager"]})  # noqa: S102
        assert manager.wait(found["job"]).state == "done"
        collection = generated_walk.make_collection(manager)
        campaign = generated_walk.make_campaign(
            manager, collection, {name: f"walking-{name}" for name in keys}
        )
        n_machine = generated_walk.judge_in_batches(machine, campaign, generated_walk.grade_with_errors, 30)
        n_person = generated_walk.judge_one_by_one(person, campaign, generated_walk.grade_with_errors)
        assert (n_machine, n_machine + n_person) == (30, 42)
        assert 5 < generated_walk.audit(manager, gold, campaign) <= 42
        found = generated_walk.compute(manager, campaign)
        assert "run0" in found.verdict
        generated_walk.bring_a_run(manager, campaign)
        generated_sweep.analyse(manager, campaign)
        generated_acts.lead(manager, person, campaign)
        generated_acts.decide(manager, campaign)
        release, content = generated_walk.make_release(manager, campaign)
        read, faults = generated_sweep.read_all(walkers, collection, campaign, release.id)
        generated_acts.correct(manager, collection, campaign)
        generated_acts.end(manager, campaign, release.id)
    assert faults == [], "\n".join(faults)
    assert read == generated_sweep.readers().keys() - generated_sweep.NOT_ASKED
    folder = unpacked(content, tmp_path / "release")
    assert verify(folder).different == []
    with open_release(folder) as opened:
        assert {row["run_id"] for row in opened.value("runs.json")} >= set(generated_walk.RUNS)
    steps, parsed = manager.steps, manager.parsed
    print(
        f"{N_OPERATIONS} operations, {len(steps)} asked in {steps.total()} requests, {len(parsed)} models parsed"
    )
