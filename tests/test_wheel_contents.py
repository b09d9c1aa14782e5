"""What is in the wheel touchstone-ir, and how imports are rewritten: the rules of wheel/, and violations of them."""

from pathlib import Path

import pytest
from contents import Need, Unfit, guests_at_once, left_out, needs_of, read_modules, shipped_modules
from hook import write_files
from pure_modules import FACADE, REPOSITORY
from rewriting import Unwritable, rewrite
from wheel_builds import copy_tree, plant


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return copy_tree(tmp_path / "tree")


def test_what_needs_more_stays_out_and_is_known() -> None:
    reasons = left_out(read_modules(REPOSITORY))
    assert reasons["judging.guidelines"] == "imports markdown_it"
    assert reasons["sampling.schedules"] == "imports cronsim"
    assert not {
        name for name in reasons if name.startswith((FACADE, "analytics.estimation", "judging.formats"))
    }


def test_planted_files_with_nh3_stay_out_and_the_facade_cannot_have_them(tree: Path) -> None:
    before = shipped_modules(tree).keys()
    plant(
        tree,
        {
            "judging/planted.py": "def clean(text):\n    import nh3\n    return nh3.clean(text)\n",
            "sampling/leaning.py": "from judging.planted import clean\n",
            "analytics/charts/drawn.py": "import altair\n",
        },
    )
    assert shipped_modules(tree).keys() == before
    assert left_out(read_modules(tree))["sampling.leaning"] == "imports judging.planted, which imports nh3"
    plant(tree, {"touchstone_ir/planted.py": "from sampling.leaning import clean\n"})
    why = (
        "touchstone_ir/planted.py: imports sampling.leaning, which imports judging.planted, which imports nh3"
    )
    with pytest.raises(Unfit, match=why):
        shipped_modules(tree)


def test_a_facade_module_may_need_an_extra_and_says_so(tree: Path) -> None:
    plant(
        tree,
        {"touchstone_ir/client.py": "import httpx\n", "touchstone_ir/planted.py": "from . import client\n"},
    )
    plant(tree, {"touchstone_ir/planted.py": "from . import client\n"})
    guests = guests_at_once(shipped_modules(tree))
    assert guests["touchstone_ir.client"] == guests["touchstone_ir.planted"] == {"httpx"}
    assert guests[FACADE] == set()


@pytest.mark.parametrize(
    ("source", "is_at_once"),
    [
        ("import httpx\n", True),
        ("class Late:\n    import httpx\n", True),
        ("try:\n    import httpx\nexcept ImportError as lack:\n    raise OSError from lack\n", True),
        ("try:\n    import httpx\nexcept ImportError:\n    httpx = None\n", False),
        ("with suppress(ImportError):\n    importlib.import_module('httpx')\n", False),
        ("def late():\n    import httpx\n", False),
    ],
)
def test_what_must_be_there_at_once_is_told_from_what_may_come_later(source: str, is_at_once: bool) -> None:
    assert [(need.top, need.is_at_once) for need in needs_of(source, "")] == [("httpx", is_at_once)]


def test_imports_for_the_type_checker_do_not_count() -> None:
    assert needs_of("if TYPE_CHECKING:\n    import nh3\nelse:\n    import json\n", "") == (
        Need("json", True),
    )


def test_a_name_of_the_tree_that_cannot_be_rewritten_ends_the_build(tree: Path, tmp_path: Path) -> None:
    plant(tree, {"sampling/planted.py": "import sampling.draws\n"})
    with pytest.raises(Unfit, match=r"sampling/planted.py: line 1: `import sampling.draws` gives the name"):
        write_files(tree, tmp_path / "files")


# -- rewriting ------------------------------------------------------------------------------------------------

BEFORE = '''\
"""Words about judging.trec stay.

>>> from judging.trec import read_qrels
>>> for name in ("é", "judging"):
...     from sampling import draws
"""
from analytics.estimation import (  # from judging import stays in a comment
    claims,
)
import sampling.draws as draws; from judging import trec
from touchstone_ir.results import Result
from .beside import one
LATE = "judging.trec", "judging.trec.read_qrels", "judging.Topic", "judging.models"
'''
AFTER = '''\
"""Words about judging.trec stay.

>>> from touchstone_ir._core.judging.trec import read_qrels
>>> for name in ("é", "judging"):
...     from touchstone_ir._core.sampling import draws
"""
from touchstone_ir._core.analytics.estimation import (  # from judging import stays in a comment
    claims,
)
import touchstone_ir._core.sampling.draws as draws; from touchstone_ir._core.judging import trec
from touchstone_ir.results import Result
from .beside import one
LATE = "touchstone_ir._core.judging.trec", "touchstone_ir._core.judging.trec.read_qrels", "judging.Topic", "judging.models"
'''  # noqa: E501


def test_imports_are_rewritten_and_nothing_else() -> None:
    names = {"judging", "judging.trec", "sampling", "sampling.draws", "analytics.estimation"}
    assert rewrite(BEFORE.encode(), names).decode() == AFTER


def test_a_name_in_two_pieces_is_refused() -> None:
    with pytest.raises(Unwritable, match=r"line 1: judging\.trec is not written in one piece"):
        rewrite(b'name = "judging." "trec"\n', {"judging.trec"})
