"""A release without texts, just made, in the loaders that people have: Hugging Face's, BEIR's, and those of citations.

datasets, BEIR and cffconvert are no dependencies: a test is skipped, and says which it lacks. All but cffconvert, which
needs an older jsonschema, may be installed beside the tests: `pip install datasets`, `pip install --no-deps beir`.
"""

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import polars as pl
import pytest
import yaml
from made_releases import judged, released
from small_campaign import TOPICS
from small_release import made_once, unpacked
from tool_files import tool

from analytics.releases.reading import open_release

pytestmark = pytest.mark.django_db
CONFIGS = ["documents", "items", "judgments", "topics"]
# In a process of its own, as a reader's program: datasets keeps what it makes of files, and may ask the network.
READS_ALL = """
import json, sys
import datasets
folder = sys.argv[1]
configs = datasets.get_dataset_config_names(folder)
found = {}
for config in configs:
    loaded = datasets.load_dataset(folder, config)
    assert list(loaded) == ["train"], loaded
    rows = loaded["train"]
    names = rows.column_names
    found[config] = {"columns": names, "rows": [[str(row[name]) for name in names] for row in rows]}
found["by default"] = datasets.load_dataset(folder)["train"].num_rows
print(json.dumps(found))
"""


@pytest.fixture
def release(tmp_path):
    return unpacked(made_once(documents=False), tmp_path / "releases")


@pytest.fixture
def undrawn(tmp_path):
    """A release of imported judgments: nothing was drawn, so that whole columns are empty."""
    made = released(judged(tmp_path), title="Judged elsewhere", authors="Ada B.", licence="CC-BY-4.0")
    return unpacked(Path(made.file.path).read_bytes(), tmp_path / "undrawn")


def heading_of(release):
    return yaml.safe_load((release / "README.md").read_text("utf-8").split("---\n")[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["release", "undrawn"])
def test_datasets_loads_every_configuration_that_the_heading_names(kind, request, tmp_path):
    tool("datasets")
    folder = request.getfixturevalue(kind)
    plain = {**os.environ, "HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", READS_ALL, str(folder)]
    ran = subprocess.run(command, env=plain, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    named = {one["config_name"]: one["data_files"] for one in heading_of(folder)["configs"]}
    assert sorted(named) == CONFIGS
    assert found.keys() == {*named, "by default"}
    with open_release(folder) as opened:
        for config, file in named.items():
            table = pl.read_parquet(folder / file)
            assert len(found[config]["rows"]) == table.height == len(list(opened.rows(f"{config}.jsonl"))) > 0
            assert found[config]["columns"] == table.columns
            for theirs, ours in zip(found[config]["rows"], table.iter_rows(), strict=True):
                assert theirs == [str(value) for value in ours]
        assert found["by default"] == len(list(opened.rows("judgments.jsonl")))


@pytest.mark.filterwarnings("ignore")  # BEIR's own: it leaves files open
def test_beirs_loader_reads_ids_with_empty_texts(release):
    loader = tool("beir.datasets.data_loader").GenericDataLoader
    corpus, queries, qrels = loader(data_folder=str(release / "beir")).load(split="test")
    assert queries == {topic: f"Need {topic}" for topic in TOPICS}
    assert {(one["title"], one["text"]) for one in corpus.values()} == {("", "")}
    with open_release(release) as opened:
        assert set(corpus) == {row["doc_id"] for row in opened.rows("documents.jsonl")}
        lines = [(line.topic_id, line.doc_id, line.grade) for line in opened.qrels()]
    assert [(q, d, grade) for q, documents in qrels.items() for d, grade in documents.items()] == lines
    assert lines
    assert {doc for _, doc, _ in lines} <= set(corpus)


def test_mlcroissant_finds_it_valid_and_reads_every_table(release):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlcroissant

        dataset = mlcroissant.Dataset(jsonld=str(release / "croissant.json"))
        assert dataset.metadata.issues.errors == set()
        read = {one.id: len(list(dataset.records(one.id))) for one in dataset.metadata.record_sets}
    assert sorted(read) == CONFIGS
    with open_release(release) as opened:
        assert read == {name: len(list(opened.rows(f"{name}.jsonl"))) for name in read}


def test_cffconvert_finds_the_citation_valid(release):
    """Another program: it needs a jsonschema of before those that the tests use."""
    command = shutil.which("cffconvert")
    if command is None:
        pytest.skip(
            "cffconvert is not installed, or not in PATH: pip install cffconvert, in an environment of its own"
        )
    ran = subprocess.run(
        [command, "--validate", "-i", str(release / "CITATION.cff")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "valid" in ran.stdout + ran.stderr
    made = subprocess.run(
        [command, "-f", "bibtex", "-i", str(release / "CITATION.cff")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "title = {A small release}" in made.stdout
    assert "Example, Ann" in made.stdout or "Ann Example" in made.stdout
