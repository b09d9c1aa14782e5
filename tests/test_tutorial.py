"""The tutorial's commands do what it says, in its order, as a newcomer types them."""

import re
import subprocess
from pathlib import Path

import pytest
from small_release import judged_campaign

from touchstone.management.commands.load_demo import SIMULATED

REPOSITORY = Path(__file__).resolve().parents[1]
TUTORIAL = REPOSITORY / "docs" / "tutorial" / "index.md"
CAMPAIGN = "Judged by simulated assessors: Python's standard library"  # as the demo names it
# tests/touchstone/test_demo_data.py and the gate start the demo; the packages come with the developers' tools.
NOT_HERE = {"make demo", ".venv/bin/pip install ir-measures ir-datasets"}


def commands():
    """Return the lines that are indented as code."""
    found = re.findall(r"^    (\S.*)$", TUTORIAL.read_text(), re.MULTILINE)
    return [command for command in found if command not in NOT_HERE]


def test_the_tutorial_has_commands_and_its_pictures_are_there():
    assert CAMPAIGN.startswith(f"{SIMULATED}: ")
    assert f'"{CAMPAIGN}"' in TUTORIAL.read_text()
    assert len(commands()) >= 6
    assert any(" release " in command for command in commands())
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TUTORIAL.read_text())
    assert len(pictures) >= 4
    assert [picture for picture in pictures if not (TUTORIAL.parent / picture).is_file()] == []


@pytest.mark.django_db(transaction=True)
def test_every_command_of_the_tutorial_works(tmp_path, child_environment):
    folder, place = tmp_path / "files", tmp_path / "here"
    folder.mkdir()
    place.mkdir()
    for name in (
        ".venv",
        "manage.py",
        "analytics",
        "touchstone_ir",
    ):  # what a clone has, so that the words of the tutorial fit
        (place / name).symlink_to(REPOSITORY / name)
    campaign = judged_campaign(folder)
    campaign.collection.runs.update(may_publish=True)
    type(campaign).objects.filter(pk=campaign.pk).update(name=CAMPAIGN)
    said = {}
    for command in commands():
        done = subprocess.run(  # noqa: S602 (the words of our own documentation, as a reader types them)
            command, shell=True, cwd=place, env=child_environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        said[command] = done.stdout
    verified = next(text for command, text in said.items() if command.endswith("verify.py"))
    assert "differ" not in verified.lower() or "nothing differs" in verified.lower()
    loaded = next(text for command, text in said.items() if "ir_datasets" in command)
    assert loaded == "3 topics\n"
    evaluated = next(text for command, text in said.items() if " evaluate " in command)
    assert "P@10" in evaluated
    assert "nDCG@10" in evaluated
    assert "@" in said[commands()[-1]]  # BibTeX
