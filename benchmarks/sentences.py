"""Read every sentence of the result pages of a running demo, and check what they say of differences between runs.

    python benchmarks/sentences.py [--url http://127.0.0.1:8000] [--campaign simulated] [--pairs all]

For every measure, both claims and four families (the question, all, each against a baseline, three runs) it reads the
pages of runs, pairs, ranking and of what to buy next, the verdict of every pair as the API gives it, and the page of
every pair in the first measure (`--pairs all`: in each). The login is the researcher's, in var/demo.json.

Nothing may be called higher, better or lower unless its p is below .05 after Holm's adjustment, which is counted here
from the unadjusted p of the pairs. A page contradicts itself if it calls a difference significant and not, or advises
to report one that is not. Sentences of a page that name no run explain a number; they are counted.

The control plants a verdict, a tag and an advice of each kind in what was read, and must find every one.
"""

import argparse
import html
import json
import re
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from itertools import combinations
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
LEVEL = 0.05
CLAIMS = ("topics-like-these", "these-topics")
MEASURE_PAGES = ("", "pairs/", "ranking/", "planner/")
WORDS = re.compile(r"\b(higher|better|lower|worse|beats?|outperforms?)\b", re.IGNORECASE)
VERDICT = re.compile(r"^(?P<a>\S+) has a higher (?P<measure>\S+) than (?P<b>\S+): mean difference \+")
NOT_SIGNIFICANT = re.compile(
    r"^The difference in (?P<measure>\S+) between (?P<a>\S+) and (?P<b>\S+), [+-].*"
    r"(is not significant at \.05|is not among the declared comparisons)"
)
TAG = re.compile(r"^(?P<a>\S+) is higher$")
PAIR = re.compile(r"^(?P<a>\S+) − (?P<b>\S+)$")
ADVICE = "you may stop here and report the difference"
BLOCKS = (
    r"p|div|td|th|li|tr|h\d|summary|caption|dt|dd|span|nav|section|form|option|label|button|pre|blockquote"
)


@dataclass
class Reading:
    """What was read, and what is wrong with it."""

    sentences: int = 0
    about_runs: int = 0
    called_higher: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, other: "Reading") -> None:
        """Count another page."""
        self.sentences += other.sentences
        self.about_runs += other.about_runs
        self.called_higher += other.called_higher
        self.faults += other.faults


# -- what a page says -----------------------------------------------------------------------------------------


def blocks_of(page: str) -> list[str]:
    """Return the texts of a page, block by block, without pictures and programs.

    >>> blocks_of("<p>A &minus; B</p><svg><text>x</text></svg><td><b>no</b></td>")
    ['A − B', 'no']
    """
    page = re.sub(r"(?s)<(script|style|svg|head|select)\b.*?</\1>", "\n", page)
    parts = re.split(rf"</?(?:{BLOCKS})\b[^>]*>", page)
    texts = (html.unescape(" ".join(re.sub(r"<[^>]+>", "", part).split())) for part in parts)
    return [text for text in texts if text]


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text.

    >>> sentences_of("A has a higher P@10 than B: +0.2 (p = .03). For these 45 topics alone: exactly 0.2.")
    ['A has a higher P@10 than B: +0.2 (p = .03).', 'For these 45 topics alone: exactly 0.2.']
    """
    return re.split(r"(?<=[.?!])\s+(?=[A-Z“])", text)


def read_page(
    texts: Sequence[str], measure: str, adjusted: Mapping[frozenset[str], float], runs: set[str], where: str
) -> Reading:
    """Return what the texts say of differences in the measure, against p that was adjusted here."""
    found, said = Reading(), dict[frozenset[str], set[str]]()
    row: frozenset[str] = frozenset()
    for text in texts:
        pair = PAIR.match(text)
        row = frozenset(pair.group("a", "b")) if pair and {*pair.group("a", "b")} <= runs else row
        for sentence in sentences_of(text):
            found.sentences += 1
            is_about_runs = bool(runs & set(re.split(r"[\s,:;()]+", sentence)))
            found.about_runs += is_about_runs
            verdict, tag, other = (pattern.match(sentence) for pattern in (VERDICT, TAG, NOT_SIGNIFICANT))
            if verdict:
                found.called_higher += 1
                named = frozenset(verdict.group("a", "b"))
                said.setdefault(named, set()).add(f"{verdict['a']} higher")
                found.faults += _if_not_sure(adjusted, named, f"{where}: {sentence}")
            elif tag and tag["a"] in runs:
                found.called_higher += 1
                said.setdefault(row, set()).add(f"{tag['a']} higher")
                found.faults += _if_not_sure(adjusted, row, f"{where}: {sorted(row)}: {sentence}")
            elif is_about_runs and WORDS.search(sentence):
                found.faults.append(f"{where}: says of runs what is no verdict: {sentence}")
            if other and other["measure"] == measure:
                said.setdefault(frozenset(other.group("a", "b")), set()).add("not significant")
    for named, words in said.items():
        if len(words) > 1:
            found.faults.append(f"{where}: contradicts itself on {sorted(named)}: {sorted(words)}")
    has_higher = any("higher" in one for words in said.values() for one in words)
    if any(ADVICE in text for text in texts) and not has_higher:
        found.faults.append(f"{where}: advises to report what is not significant")
    return found


def _if_not_sure(adjusted: Mapping[frozenset[str], float], pair: frozenset[str], words: str) -> list[str]:
    p = adjusted.get(pair)
    return [] if p is not None and p < LEVEL else [f"{words} (adjusted p {p})"]


def holm_by_hand(p_values: Mapping[frozenset[str], float]) -> dict[frozenset[str], float]:
    """Return Holm's adjusted p: the k-th smallest of m times m - k + 1, never falling.

    >>> a, b, c = (frozenset(pair) for pair in ("xy", "xz", "yz"))
    >>> sorted(holm_by_hand({a: 0.01, b: 0.04, c: 0.03}).values())
    [0.03, 0.06, 0.06]
    """
    before, found = 0.0, {}
    for place, (pair, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        before = max(before, min(1.0, (len(p_values) - place) * p))
        found[pair] = before
    return found


# -- the running demo -----------------------------------------------------------------------------------------


class Demo:
    """A researcher who is logged in."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        logins = json.loads((REPOSITORY / "var" / "demo.json").read_text())
        known = next(login for login in logins if login["role"] == "researcher")
        token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.page("/login/"))[0]
        sent = {"csrfmiddlewaretoken": token, **{name: known[name] for name in ("username", "password")}}
        asked = urllib.request.Request(  # noqa: S310 (loopback)
            f"{url}/login/", urllib.parse.urlencode(sent).encode(), {"Referer": f"{url}/login/"}
        )
        if self.opener.open(asked).url.endswith("/login/"):
            raise SystemExit("the demo's researcher cannot log in")

    def page(self, path: str, **asked: str) -> str:
        """Return a page as text; an answer that is no page ends the program."""
        query = f"?{urllib.parse.urlencode(asked)}" if asked else ""
        with self.opener.open(f"{self.url}{path}{query}") as answer:
            return str(answer.read().decode())

    def rows(self, path: str, **asked: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a list of the API, page by page."""
        answer = json.loads(self.page(path, **asked))
        while True:
            yield from answer["results"]
            if not answer["next"]:
                return
            answer = json.loads(self.page(answer["next"].removeprefix(self.url)))

    def campaign(self, name: str) -> str:
        """Return the identifier of the campaign whose name has these letters."""
        known = re.findall(r'href="/results/([0-9a-f-]{36})/[^"]*"[^>]*>([^<]*)', self.page("/results/"))
        return str(next(key for key, words in known if name in words))


def families_of(demo: Demo, campaign: str, runs: Sequence[str]) -> dict[str, set[frozenset[str]]]:
    """Return the pairs of four families by name."""
    question = json.loads(demo.page(f"/api/v1/campaigns/{campaign}/families"))["question"]
    pairs = {frozenset(pair) for pair in combinations(runs, 2)}
    asked = {frozenset(pair) for pair in combinations(question["runs"], 2)}
    if question["baseline"]:
        asked = {pair for pair in asked if question["baseline"] in pair}
    chosen = sorted(runs)[:3]
    return {
        "question": asked,
        "all": pairs,
        f"baseline:{chosen[0]}": {pair for pair in pairs if chosen[0] in pair},
        f"runs:{','.join(chosen)}": {frozenset(pair) for pair in combinations(chosen, 2)},
    }


def read_demo(demo: Demo, campaign: str, *, all_pairs: bool) -> tuple[Reading, list[tuple[Any, ...]]]:
    """Return what all pages say, and a few of them to plant faults in."""
    results, api = f"/results/{campaign}/", f"/api/v1/campaigns/{campaign}/comparisons"
    measures = re.findall(r'aria-label="Measure">(.*?)</nav>', demo.page(results), re.DOTALL)[0]
    names = [text for text in blocks_of(re.sub(r"</?a\b[^>]*>", "</p>", measures)) if text != "Measure"]
    total, kept = Reading(), list[tuple[Any, ...]]()
    for place, measure in enumerate(names):
        for claim in CLAIMS:
            stored = list(demo.rows(api, measure=measure, claim=claim, family="all"))
            runs = {row[side] for row in stored for side in ("run", "run_b")}
            raw = {frozenset((row["run"], row["run_b"])): row["p"] for row in stored}
            for family, pairs in families_of(demo, campaign, sorted(runs)).items():
                p = {pair: raw[pair] for pair in pairs if raw.get(pair) is not None}
                adjusted, choice = holm_by_hand(p), {"measure": measure, "claim": claim, "family": family}
                where = f"{measure}, {claim}, {family}"
                for row in demo.rows(api, **choice):
                    total.add(read_page([row["verdict"]], measure, adjusted, runs, f"API: {where}"))
                for name in MEASURE_PAGES:
                    if (
                        name == "planner/"
                        and "DCG" not in measure[:3]
                        and not measure.startswith(("P@", "RBP"))
                    ):
                        continue
                    texts = blocks_of(demo.page(results + name, **choice))
                    kept.append((texts, measure, adjusted, runs, f"{name or 'runs'}: {where}"))
                    total.add(read_page(*kept[-1]))
                for a, b in combinations(sorted(runs), 2) if all_pairs or place == 0 else ():
                    texts = blocks_of(demo.page(f"{results}pair/", a=a, b=b, **choice))
                    kept.append((texts, measure, adjusted, runs, f"pair: {where}"))
                    total.add(read_page(*kept[-1]))
                print(f"{where}: {total.sentences:,} sentences, {len(total.faults)} faults", flush=True)
    return total, kept


# -- the control ----------------------------------------------------------------------------------------------


def planted_faults(
    texts: Sequence[str], measure: str, adjusted: Mapping[frozenset[str], float], runs: set[str]
) -> Iterator[list[str]]:
    """Yield the texts of a page with one wrong sentence each, of every kind."""
    pair = next(
        pair for pair in map(frozenset, combinations(sorted(runs), 2)) if adjusted.get(pair, 1.0) >= LEVEL
    )
    a, b = sorted(pair)
    verdict = f"{a} has a higher {measure} than {b}: mean difference +0.1 (p = .01), significant at .05."
    yield [*texts, verdict]
    yield [*texts, f"{a} − {b}", f"{a} is higher"]
    yield [*texts, f"{a} is clearly better than {b}."]
    yield [
        *texts,
        verdict,
        f"The difference in {measure} between {a} and {b}, +0.1 (x), is not significant at .05.",
    ]
    if not any(VERDICT.match(text) or TAG.match(text) for text in texts):
        yield [*texts, f"It does not contain 0 either: {ADVICE}."]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--campaign", default="simulated", help="letters of its name")
    parser.add_argument("--pairs", choices=["first", "all"], default="first", help="pages of pairs: measures")
    options = parser.parse_args()
    demo = Demo(options.url)
    total, kept = read_demo(demo, demo.campaign(options.campaign), all_pairs=options.pairs == "all")
    n_planted = n_missed = 0
    for texts, measure, adjusted, runs, where in kept:
        clean = len(read_page(texts, measure, adjusted, runs, where).faults)
        for planted in planted_faults(texts, measure, adjusted, runs):
            n_planted += 1
            if len(read_page(planted, measure, adjusted, runs, where).faults) <= clean:
                n_missed += 1
                print(f"control: missed in {where}: {planted[len(texts) :]}")
    print(
        f"\n{total.sentences:,} sentences, {total.about_runs:,} of runs; {total.called_higher:,} call a run higher"
    )
    print(f"{len(total.faults)} faults; of {n_planted:,} planted ones {n_planted - n_missed:,} were found")
    for fault in sorted(set(total.faults))[:50]:
        print(f"  {fault}")
    sys.exit(1 if total.faults or n_missed or not n_planted else 0)


if __name__ == "__main__":
    main()
