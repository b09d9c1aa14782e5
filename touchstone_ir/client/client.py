"""Everything the examples do, by name. What is not here is one `get`, `post` or `pages` of the transport away."""

import hashlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import httpx

from touchstone_ir.client.answers import (
    Answer,
    Comparison,
    Estimate,
    Item,
    Job,
    Judgment,
    Measures,
    Outcome,
    Pair,
    Ranking,
    Release,
    RunEstimate,
    Submission,
)
from touchstone_ir.client.faults import DownloadDamaged, JobFailed, JobTimeout
from touchstone_ir.client.transport import Transport

BLOCK = 2**20
MOST_AT_ONCE = 50  # items claimed, or judgments sent, by one request


class Client:
    """A Touchstone, seen with one key.

    >>> with Client("https://touchstone.example.org", "touchstone_...") as touchstone:  # doctest: +SKIP
    ...     for pair in touchstone.comparisons(campaign, measure="nDCG@10"):
    ...         print(pair["verdict"])
    """

    def __init__(
        self,
        address: str,
        key: str,
        *,
        tries: int = 6,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.http = Transport(address, key, tries=tries, timeout=timeout, transport=transport)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    # -- who, what, and jobs --------------------------------------------------------------------------------

    def me(self) -> Answer:
        """Return who the key belongs to, and what it may do."""
        return self._answer(self.http.get("me"))

    def campaigns(self, **query: Any) -> Iterator[Answer]:
        return self.http.pages("campaigns", **query)

    def job(self, job: Job | Answer | str) -> Job:
        return self._job(self.http.get(f"jobs/{_id(job)}"))

    def wait(
        self, job: Job | Answer | str, *, timeout: float = 600.0, tell: Callable[[Job], None] | None = None
    ) -> Job:
        """Return the job once it is done; `tell` hears of its progress. JobFailed says why it is not."""
        until, pause = time.monotonic() + timeout, 0.1
        while True:
            now = self.job(job)
            if tell is not None:
                tell(now)
            if now["state"] == "done":
                return now
            if now["state"] in ("failed", "cancelled"):
                raise JobFailed(f"{now['kind']} {now['state']}: {now['error']}")
            if time.monotonic() > until:
                raise JobTimeout(f"{now['kind']} is {now['state']} after {timeout:g} seconds: {now['note']}")
            time.sleep(pause)
            pause = min(2.0, 1.5 * pause)

    # -- setting up -----------------------------------------------------------------------------------------

    def new_collection(self, name: str, **fields: Any) -> Answer:
        return self._answer(self.http.post("collections", {"name": name, **fields}))

    def import_file(
        self, collection: str, kind: str, file: Path | tuple[str, BinaryIO], **options: Any
    ) -> Job:
        """Import topics, documents, runs, scores or judgments, and return the job once it is done."""
        address = f"collections/{collection}/imports"
        if isinstance(file, tuple):
            return self.wait(self.http.post(address, files={"files": file}, kind=kind, **options))
        with file.open("rb") as stream:
            return self.import_file(collection, kind, (file.name, stream), **options)

    def new_campaign(self, collection: str, name: str, **fields: Any) -> Answer:
        return self._answer(self.http.post("campaigns", {"collection": collection, "name": name, **fields}))

    def add_assessor(self, campaign: str, username: str, **fields: Any) -> Answer:
        """Add an assessor; fields: tier (gold, silver, bronze) and kind (human, machine)."""
        return self._answer(self._campaign_post(campaign, "assessors", {"username": username, **fields}))

    def draw(self, campaign: str, **design: Any) -> Job:
        """Draw the items to judge, and return the job once they are drawn."""
        return self.wait(self._campaign_post(campaign, "draws", design))

    def set_state(self, campaign: str, state: str) -> Answer:
        """Open or close the campaign."""
        return self._answer(self._campaign_post(campaign, "state", {"state": state}))

    def audit(self, campaign: str, items: int, **fields: Any) -> Job:
        """Have so many judged items judged again by the gold tier, chosen at random with known chances."""
        return self.wait(self._campaign_post(campaign, "audits", {"items": items, **fields}))

    # -- judging --------------------------------------------------------------------------------------------

    def claim(self, campaign: str, n: int = MOST_AT_ONCE) -> list[Item]:
        """Lease up to n items with their texts; an empty list: there is nothing to judge now."""
        items: list[Item] = self._campaign_post(campaign, "claim", {"n": n, "with_text": True})["items"]
        return items

    def send(self, campaign: str, grades: Mapping[str, int | None] | Iterable[Submission]) -> list[Outcome]:
        """Send judgments: grades by the tokens of their items (None: this could not be judged), or whole judgments."""
        made = (
            [_submission(token, grade) for token, grade in grades.items()]
            if isinstance(grades, Mapping)
            else list(grades)
        )
        saved: list[Outcome] = []
        for start in range(0, len(made), MOST_AT_ONCE):
            part = {"judgments": made[start : start + MOST_AT_ONCE]}
            saved += self._campaign_post(campaign, "batch", part)["saved"]
        return saved

    def judge(self, campaign: str, grade: Callable[[Item], int | None], *, limit: int | None = None) -> int:
        """Judge with a function until there is no work, or so many items; return how many were saved."""
        done = 0
        while limit is None or done < limit:
            items = self.claim(campaign, MOST_AT_ONCE if limit is None else min(MOST_AT_ONCE, limit - done))
            if not items:
                break
            saved = self.send(campaign, {item["token"]: grade(item) for item in items})
            n_saved = sum(one["status"] == 200 for one in saved)
            if n_saved == 0:
                raise RuntimeError(f"nothing was saved, for example {saved[0]}")
            done += n_saved
        return done

    def judgments(self, campaign: str, **query: Any) -> Iterator[Judgment]:
        """Return the log of judgments; queries: since, before, topic_id, assessor, grade and other filters."""
        return self.http.pages(f"campaigns/{campaign}/judgment-log", **query)

    def export(self, campaign: str, kind: str, path: Path, *, prefers_gold: bool = True) -> Path:
        """Write the judgments as a file: kind is qrels, qrels_jg, prels or crowd. It appears whole or not at all."""
        address = httpx.URL(
            f"/api/v1/campaigns/{campaign}/{kind}", params={"prefers_gold": str(prefers_gold).lower()}
        )
        part = path.with_name(f"{path.name}.part")
        try:
            with self.http.stream(str(address)) as answer, part.open("wb") as stream:
                for block in answer.iter_bytes():
                    stream.write(block)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return path

    # -- numbers --------------------------------------------------------------------------------------------

    def measures(self, campaign: str) -> Measures:
        found: Measures = self._campaign_get(campaign, "measures")
        return found

    def estimates(self, campaign: str, **query: Any) -> Iterator[Estimate]:
        """Return estimates; queries: measure, method, run, against, pairs (True or False), computation."""
        return self.http.pages(f"campaigns/{campaign}/estimates", **query)

    def comparisons(self, campaign: str, **query: Any) -> Iterator[Pair]:
        """Return all pairs of runs, each with a sentence; queries: measure, run, against, claim, family, adjustment."""
        return self.http.pages(f"campaigns/{campaign}/comparisons", **query)

    def compare(
        self, campaign: str, run: str, against: str, measure: str | None = None, **choice: Any
    ) -> Comparison:
        """Return one pair with both claims; choices: claim, family, adjustment."""
        query = {"run": run, "against": against, "measure": measure}
        found: Comparison = self._campaign_get(campaign, "comparison", **query, **choice)
        return found

    def ranking(self, campaign: str, measure: str | None = None, method: str | None = None) -> Ranking:
        found: Ranking = self._campaign_get(campaign, "ranking", measure=measure, method=method)
        return found

    def recompute(self, campaign: str) -> Job:
        """Have all numbers made anew now (for managers); new judgments are noticed without it within seconds."""
        return self._job(self._campaign_post(campaign, "computations"))

    def plot(self, campaign: str, name: str, **query: Any) -> bytes:
        """Return a picture: `format="svg"`, "png" or "csv"; queries: measure, run, against, theme."""
        address = httpx.URL(f"/api/v1/campaigns/{campaign}/plots/{name}", params=query)
        with self.http.stream(str(address)) as answer:
            return answer.read()

    def upload_run(
        self, campaign: str, file: Path | tuple[str, BinaryIO], *, against: str | None = None, **fields: Any
    ) -> Job:
        """Bring a run file; fields: description, may_publish. Wait for the job, then ask `run_estimate`."""
        address = f"campaigns/{campaign}/runs"
        if isinstance(file, tuple):
            return self._job(self.http.post(address, files={"file": file}, against=against, **fields))
        with file.open("rb") as stream:
            named = {"file": (file.name, stream)}
            return self._job(self.http.post(address, files=named, against=against, **fields))

    def run_estimate(
        self, campaign: str, run: str, measure: str | None = None, against: str | None = None
    ) -> RunEstimate:
        query = {"run": run, "measure": measure, "against": against}
        found: RunEstimate = self._campaign_get(campaign, "run-estimate", **query)
        return found

    # -- releases -------------------------------------------------------------------------------------------

    def releases(self, campaign: str, **query: Any) -> Iterator[Release]:
        return self.http.pages(f"campaigns/{campaign}/releases", **query)

    def make_release(self, campaign: str, version: str, title: str, **fields: Any) -> Release:
        """Freeze the campaign as it is now, and return the release once it is ready to be downloaded."""
        made: Release = self._campaign_post(
            campaign, "releases", {"version": version, "title": title, **fields}
        )
        if made["job"] is not None:
            self.wait(made["job"])
        return self.release(campaign, made["id"])

    def release(self, campaign: str, release: str) -> Release:
        found: Release = self._campaign_get(campaign, f"releases/{release}")
        return found

    def download(self, campaign: str, release: Release, folder: Path) -> Path:
        """Download a release and check its SHA-256; what an earlier try brought is not fetched again."""
        target = folder / f"{release['id']}.zip"
        part = target.with_suffix(".part")
        address = f"campaigns/{campaign}/releases/{release['id']}/download"
        self.http.persist(lambda: self._fetch(address, part, release["sha256"]))
        found = _sha256(part)
        if found != release["sha256"]:
            part.unlink()
            raise DownloadDamaged(f"SHA-256 is {found}, not {release['sha256']}: download it again")
        return part.replace(target)

    def _fetch(self, address: str, part: Path, sha256: str) -> None:
        """Add to the part what is missing of it."""
        start = part.stat().st_size if part.exists() else 0
        headers = {"Range": f"bytes={start}-", "If-Range": f'"{sha256}"'} if start else {}
        with self.http.stream(address, headers) as answer:
            if answer.status_code == 416:  # all of it is here already
                return
            with part.open("ab" if answer.status_code == 206 else "wb") as stream:
                for block in answer.iter_raw():
                    stream.write(block)

    # -- inside ---------------------------------------------------------------------------------------------

    def _campaign_get(self, campaign: str, path: str, **query: Any) -> Any:
        return self.http.get(f"campaigns/{campaign}/{path}", **query)

    def _campaign_post(self, campaign: str, path: str, body: Any = None) -> Any:
        return self.http.post(f"campaigns/{campaign}/{path}", body)

    @staticmethod
    def _answer(body: Answer) -> Answer:
        return body

    @staticmethod
    def _job(body: Job) -> Job:
        return body


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _submission(token: str, grade: int | None) -> Submission:
    if grade is None:
        return {"token": token, "client_token": str(uuid.uuid4()), "obstacle": "failed"}
    return {"token": token, "client_token": str(uuid.uuid4()), "grade": grade}


def _id(job: Job | Answer | str) -> str:
    """Return the id of a job; the answers about draws and audits call it `job`."""
    if isinstance(job, str):
        return job
    named: Answer = dict(job)
    return str(named.get("id") or named["job"])
