"""README.md, CHANGES.md and LICENSE.txt of a release: what it is, how it was made, what it may be used for."""

from collections.abc import Iterator

from analytics.releases import formats
from analytics.releases.about import About, slug
from analytics.releases.citation import citation_text
from analytics.releases.licences import licence_named
from analytics.releases.tables import SECONDS_STEP
from analytics.releases.yaml_lines import Value, yaml_lines

HAS_METADATA = 2  # the first format whose data sheet begins with metadata
FIRST_TABLE = "judgments.parquet"
SIMULATED = "**The judgments come from a simulation. Draw no conclusion from them.**"
STILL_OPEN = (
    "**The campaign was still open at that moment.** This release reveals which items were gold checks: do not show "
    "it to assessors who still judge there."
)


def readme(about: About) -> str:
    """Return the data sheet: Markdown that stands alone, after what the Hugging Face Hub reads."""
    return "\n".join(_readme(about)).rstrip() + "\n"


def hub_metadata(about: About) -> dict[str, Value]:
    """Return what `datasets.load_dataset` reads of README.md: a configuration a table, the first by default."""
    licence = licence_named(about.licence)
    named = licence.hub if licence else "other" if about.licence else "unknown"
    files = [one.croissant for one in formats.RELEASE_FILES if one.croissant]
    files.sort(key=lambda name: (name != FIRST_TABLE, name))
    own = (
        {"license_name": slug(about.licence, "other"), "license_link": "LICENSE.txt"}
        if named == "other"
        else {}
    )
    return {
        "license": named,
        **own,
        "pretty_name": _line(about.title),
        "task_categories": ["text-retrieval"],
        "tags": ["information-retrieval", "relevance-judgments", "test-collection"],
        "configs": [
            {"config_name": name.partition(".")[0], "data_files": name, "default": name == FIRST_TABLE}
            for name in files
        ],
    }


def _readme(about: About) -> Iterator[str]:
    if about.form >= HAS_METADATA:
        yield from ("---", *yaml_lines(hub_metadata(about)), "---", "")
    yield from (f"# {_line(about.title)}, version {about.version}", "")
    yield f"Judgments of the campaign “{_line(about.campaign)}” on the collection “{_line(about.collection)}”, as of "
    yield from (f"{about.as_of}. A release of Touchstone; it never changes.", "")
    for warning in (SIMULATED if about.is_simulated else "", STILL_OPEN if about.campaign_is_open else ""):
        if warning:
            yield from (warning, "")
    yield from _section("Notes", about.notes)
    yield from _section("Purpose", about.description)
    yield from _made_of(about)
    yield from _process(about)
    yield from ("## Files", "", "| file | holds |", "|---|---|")
    texts = ", with title and text" if about.includes_documents else ""
    for one in formats.RELEASE_FILES:
        if one.since > about.form:
            continue
        yield f"| {', '.join(one.names)} | {one.help.replace('{texts}', texts)} |"
    yield ""
    if not about.includes_documents:
        yield from (f"The documents' texts are not in this release: {about.why_no_documents}.", "")
    if about.unpublished_runs:
        n = about.unpublished_runs
        yield from (UNPUBLISHED.format(runs=f"{n:,} {'run is' if n == 1 else 'runs are'}"), "")
    if about.form >= HAS_METADATA:
        yield from _section("Use it", USING.format(name=f"{about.folder}.zip"))
    yield from _section("Check it", CHECKING)
    yield from _section("Limits", LIMITS)
    yield from _section("People", _people(about))
    yield from _section("Licence", licence_text(about).rstrip())
    yield from _section("Cite", citation_text(about).rstrip())
    yield from _section("Guidelines of the assessors", _quote(about.guidelines))


CHECKING = """    python verify.py

compares every file with the manifest and computes qrels, confusion matrices and estimates again from the judgments
with NumPy alone. It says what it cannot compute again: numbers of runs that are not in the release, and ratios of
estimates, whose intervals come from resampling. The Merkle root covers the lines of judgments.jsonl as RFC 6962 has
it: a leaf is SHA-256 of the byte 0 and the line, a node SHA-256 of the byte 1 and its two parts."""
USING = """    pip install touchstone-ir
    touchstone evaluate {name} my.run P@10 nDCG@10

scores a run on these judgments with a 95 % confidence interval, or says why there is none. A plain mean over the
judgments is biased: documents were drawn with unequal probabilities. `datasets.load_dataset` reads the unpacked folder,
a configuration a table; readers of BEIR read its `beir` folder."""
UNPUBLISHED = (
    "{runs} not in this release, as their makers do not allow it: neither their names nor their numbers. Where a "
    "design, an audit or a family of comparisons is about one, it is called unpublished-1 and so on. The adjusted p in "
    "comparisons.json are adjusted for the pairs of published runs."
)
LIMITS = """A document that is not in qrels.txt was not judged; it is not known to be irrelevant. Only part of the pool
may have been judged: use the probabilities in prels.txt and items.jsonl, or estimates.json, rather than counting
unjudged documents as irrelevant. The grades of people and machine assessors contain errors; confusion.json has their
rates. Estimates marked naive take grades as given; corrected ones rest on a random audit by the gold tier, whose grades
are taken as true, or on the judgments where every judged document was graded by a gold judge (is_by_gold_judges in
estimates.json). An adjudicated grade was not drawn at random: it is in the qrels, and no estimate uses it."""


def _section(title: str, text: str) -> Iterator[str]:
    if text.strip():
        yield from (f"## {title}", "", text.strip("\n"), "")


def _made_of(about: About) -> Iterator[str]:
    yield from ("## Contents", "", "| | |", "|---|---:|")
    for name in sorted(about.counts):
        yield f"| {name} | {about.counts[name]:,} |"
    yield ""


def _process(about: About) -> Iterator[str]:
    yield from ("## How it was made", "")
    grades = "; ".join(f"{value} {_line(label)} (gain {gain:g})" for value, label, gain in about.grades)
    file = about.labels_in_file
    wanted = f"as many as the imported file has ({file})" if file else about.judgments_per_item
    yield f"Judgments per item: {wanted}. Grades: {grades}."
    yield from (f"An item counts as relevant from grade {about.relevant_grade}.", "")
    yield from (f"The grade of an item in qrels.txt is {about.qrels_rule}.", "")
    for draw in about.draws:
        yield f"- {draw}"
    for audit in about.audits:
        yield f"- {audit}"
    if about.draws or about.audits:
        yield ""
    if about.measures:
        yield from (f"Estimated measures: {', '.join(about.measures)}.", "")
    if about.no_estimates:
        yield from (f"There are no estimates: {about.no_estimates}.", "")
    yield from _section("Source of the collection", about.source)


def _people(about: About) -> str:
    consent = (
        "Assessors were asked for their consent before they judged."
        if about.asked_for_consent
        else "The campaign had no consent page."
    )
    seconds = "the seconds spent on an item"
    joined = ""
    if about.form >= HAS_METADATA:
        seconds += f", rounded to {SECONDS_STEP:.0f}"
        joined = (
            " Pseudonyms keep nobody from joining these rows with the server's log, a copy of it or another release, "
            "by topic, document, grade and day."
        )
    return (
        f"{consent} They have pseudonyms, made with a key of this release alone: the same person has another one in "
        f"any other release. The release contains days and {seconds}, but no names of accounts, "
        f"addresses, comments, messages or times of day.{joined}"
    )


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def licence_text(about: About) -> str:
    """Return LICENSE.txt: the permitted uses of the judgments and the documents."""
    judgments = about.licence or "no licence was named: ask the publisher before you use it"
    documents = about.documents_licence or "no licence was named"
    where = "in this release" if about.includes_documents else "not in this release; for the texts themselves"
    return f"Judgments and everything made from them: {_line(judgments)}.\nDocuments ({where}): {_line(documents)}.\n"


def changes_text(about: About) -> str:
    """Return CHANGES.md: how the grades differ from those of the release before."""
    head = f"# Changes of {_line(about.title)}, version {about.version}\n\n"
    changes = about.changes
    if not changes:
        return head + "The first release of this campaign.\n"
    notes = f"\n{about.notes.strip()}\n" if about.notes.strip() else ""
    if "unknown" in changes:
        return f"{head}Against version {changes['previous']}: {changes['unknown']}.\n{notes}"
    return (
        f"{head}Against version {changes['previous']}: {changes['added']:,} grades added, "
        f"{changes['changed']:,} changed, {changes['removed']:,} removed, {changes['same']:,} the same.\n{notes}"
    )


def _line(text: str) -> str:
    """Return a text on one line, so that it cannot look like a part of the page around it."""
    return " ".join(text.split())
