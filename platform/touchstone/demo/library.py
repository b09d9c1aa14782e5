"""The demo's collection as files: the standard library's documentation, and what the demo's systems find in it.

`python -m touchstone.demo.library FOLDER` writes them: `prepare` lets it, while it makes the tables of a new database.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from judging.topics import read_topics
from touchstone.demo import docstrings, systems
from touchstone.demo.runs import RunFiles, run_files

TOPICS = Path(docstrings.__file__).parent / "topics.xml"
CORPUS = "corpus.jsonl"


def write_library(folder: Path, say: Callable[[str], None]) -> None:
    """Read the documentation, let the systems search it, and write a corpus and a file a run."""
    say("reading the documentation of Python's standard library")
    documents = list(docstrings.stdlib_documents())
    with (folder / CORPUS).open("w") as target:
        for document in documents:
            record = {"_id": document["doc_id"], "title": document["title"], "text": document["text"]}
            target.write(json.dumps(record) + "\n")
    topics = [vars(topic) for topic in read_topics(TOPICS, TOPICS.name)]
    say(f"searching {len(documents)} documents for {len(topics)} topics")
    run_files(documents, topics, folder, systems.rankings)


def files_of(folder: Path) -> tuple[Path, RunFiles]:
    """Return the corpus and the runs that were written into a folder."""
    return folder / CORPUS, [(path, path.name) for path in sorted(folder.glob("*.run"))]


@contextlib.contextmanager
def early_library() -> Iterator[Callable[[], Path]]:
    """Let a process of its own write the library; yield what waits for it and returns the folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "touchstone.demo.library", folder]
        process = subprocess.Popen(command)

        def wait() -> Path:
            if code := process.wait():
                raise RuntimeError(f"reading the standard library ended with exit code {code}")
            return Path(folder)

        try:
            yield wait
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    write_library(Path(sys.argv[1]), lambda line: print(f"  {line}", flush=True))
