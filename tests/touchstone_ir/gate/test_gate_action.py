"""The steps of the GitHub Action of docs/examples/gate, as its runner does them: by bash, with -e and pipefail."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from gate_files import QUESTION, GateFiles, write_gate_files

REPOSITORY = Path(__file__).resolve().parents[3]
ACTION = yaml.safe_load((REPOSITORY / "docs" / "examples" / "gate" / "action.yml").read_text())
INPUT = re.compile(r"\$\{\{ inputs\.(\w+) \}\}")


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """Return a folder with the command `touchstone`, as an installed wheel has it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "touchstone"
    script.write_text(f'#!/bin/bash\nexec {sys.executable} -m touchstone_ir.command "$@"\n')
    script.chmod(0o755)
    return folder


def run_action(files: GateFiles, command: Path, **given: str) -> tuple[int, str, str]:
    """Do all steps; return the exit code of the last one done, the summary and the outputs."""
    inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
    names = {"a": "old.run", "b": "new.run", "labels": "llm.qrels"}
    inputs |= names | {name: str(value) for name, value in QUESTION.items()} | given
    summary, outputs = files.folder / "summary.md", files.folder / "outputs"
    summary.write_text("")
    outputs.write_text("")
    surroundings = os.environ | {
        "PATH": f"{command}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(outputs),
    }
    code = 0
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        own = {name: INPUT.sub(lambda found: inputs[found[1]], value) for name, value in step["env"].items()}
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        code = subprocess.run(bash, cwd=files.folder, env=surroundings | own, capture_output=True).returncode
        if code:
            break
    return code, summary.read_text(), outputs.read_text()


@pytest.mark.slow
def test_the_action_goes_from_start_to_verdict(tmp_path: Path, command: Path) -> None:
    files = write_gate_files(tmp_path / "work", better_by=3.0)
    code, summary, outputs = run_action(files, command)
    assert (code, outputs) == (0, "verdict=judgments wanted\n")
    assert summary.startswith("### Gate: judgments wanted\n")
    for _ in range(10):
        shutil.copy(files.folder / "next-batch.csv", files.folder / "batch.csv")
        files.fill(files.folder / "batch.csv")
        code, summary, outputs = run_action(files, command)
        if "wanted" not in outputs:
            break
    assert (code, outputs) == (0, "verdict=better or not worse\n")
    assert summary.startswith(("### Gate: better\n", "### Gate: not worse\n"))
    assert "| B less A | +0." in summary


@pytest.mark.slow
def test_a_worse_run_and_bad_input_fail_the_job(tmp_path: Path, command: Path) -> None:
    files = write_gate_files(tmp_path / "work", better_by=3.0)
    turned = {"a": "new.run", "b": "old.run", "batch": "60"}
    for _ in range(4):
        code, summary, outputs = run_action(files, command, **turned)
        if code:
            break
        shutil.copy(files.folder / "next-batch.csv", files.folder / "batch.csv")
        files.fill(files.folder / "batch.csv")
    assert (code, outputs) == (1, "verdict=worse\n")
    assert summary.startswith("### Gate: worse\n")
    assert run_action(files, command, **turned, cap="50")[0] == 2, "another question"


def test_the_action_names_every_input_that_it_uses() -> None:
    used = set(INPUT.findall((REPOSITORY / "docs" / "examples" / "gate" / "action.yml").read_text()))
    assert used == set(ACTION["inputs"])
    assert not any(INPUT.search(step["run"]) for step in ACTION["runs"]["steps"]), (
        "inputs reach bash as variables alone"
    )
