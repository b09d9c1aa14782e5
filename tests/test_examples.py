"""The notebooks of docs/examples: executed anew, they say what stands in them; and nothing of this machine does."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from live import key_of, stack
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
NAMES = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))
MADE_WITH = (3, 11)  # the Python whose output is committed
LONGEST = 120  # seconds of one cell; far more than it takes, for a machine that does much else


def execute(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **environment: str) -> Any:
    """Return the notebook as it comes out of a kernel of its own."""
    for variable in [variable for variable in os.environ if variable.startswith("DJANGO_")]:
        monkeypatch.delenv(variable)  # a kernel is no Django
    for variable, value in {
        "TOUCHSTONE_FOLDER": str(folder),
        "IPYTHONDIR": str(folder),
        **environment,
    }.items():
        monkeypatch.setenv(variable, value)
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    client = NotebookClient(notebook, timeout=LONGEST, resources={"metadata": {"path": str(EXAMPLES)}})
    return client.execute()


def said(notebook: Any) -> list[str]:
    """Return what the cells print and return, but no pictures."""
    texts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                texts.append(output.text)
            elif "data" in output and "image/svg+xml" not in output.data:
                texts.append(output.data["text/plain"])
    return texts


def as_here(texts: list[str]) -> list[str]:
    """Return what is to be compared: the documents of the machine's notebook are the documentation of this Python.

    Another release of Python says other things there, and of the output only the words are the same.
    """
    if sys.version_info[:2] == MADE_WITH:
        return texts
    return [re.sub(r"\d+(\.\d+)?", "N", text) for text in texts]


def committed(name: str) -> Any:
    return nbformat.read(EXAMPLES / name, as_version=4)


@pytest.mark.slow
def test_two_runs_are_compared_without_a_server(tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:9/nothing")
    found = said(execute("compare_two_runs.ipynb", tmp_path, monkeypatch))
    assert found == said(committed("compare_two_runs.ipynb"))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_machine_judges_is_corrected_and_its_release_evaluates_a_new_run(
    child_environment, tmp_path, monkeypatch
):
    keys = {
        "TOUCHSTONE_KEY": key_of("mara", "manager"),
        "TOUCHSTONE_MACHINE_KEY": key_of("bob"),
        "TOUCHSTONE_GOLD_KEY": key_of("greta"),
    }
    with stack(child_environment) as address:
        first = said(
            execute("judge_with_a_machine.ipynb", tmp_path, monkeypatch, TOUCHSTONE_ADDRESS=address, **keys)
        )
    assert as_here(first) == as_here(said(committed("judge_with_a_machine.ipynb")))
    second = said(execute("evaluate_on_a_release.ipynb", tmp_path, monkeypatch))
    assert as_here(second) == as_here(said(committed("evaluate_on_a_release.ipynb")))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_was_executed_in_order_and_names_no_machine(name):
    notebook = committed(name)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert said(notebook)
    assert all("execution" not in cell.metadata for cell in notebook.cells)  # when it was executed
    text = (EXAMPLES / name).read_text()
    here = str(EXAMPLES.parents[1])
    for word in (here, "/tmp/", "/home/", "/root/", "127.0.0.1", "localhost", "Traceback"):  # noqa: S108
        assert word not in text, word
