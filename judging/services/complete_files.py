"""A file of judgments that is all there is: every document in it is judged, and nothing is left to draw or to judge."""

from django.db import connection

from judging.models import IMPORTED_JUDGMENTS, Campaign
from judging.samples import METHOD_CODES
from judging.services.errors import ImportRefused
from judging.services.imported_samples import ImportedSample, record_sample
from judging.services.judgment_formats import JudgmentFile
from touchstone.models import Event, User

NOT_ALL = (
    "this campaign has items already, from a draw or from judgments: a file that is all there is needs a campaign "
    "without any; create a new one, or import the file as further judgments"
)
WAS_ALL = (
    "the judgments of this campaign were imported as all there is: join both files, and import them into a new "
    "campaign"
)
JUDGED_PAIRS = """
SELECT topic_name, document_name, item_id FROM wanted WHERE turn = 1 ORDER BY ordinal
"""


def wants_all(campaign: Campaign | None, complete: bool | None, *, as_gold: bool) -> bool:
    """Return whether the file is taken for all there is: as it is said, else where the campaign has nothing yet.

    Gold answers and samples never are (`as_gold`).
    """
    if campaign is None or as_gold:
        if complete:
            raise ImportRefused(
                "only judgments of named assessors can be all there is, neither gold answers nor samples"
            )
        return False
    return not campaign.items.exists() if complete is None else complete


def refuse_what_is_there(campaign: Campaign, *, is_all: bool) -> None:
    """Raise ImportRefused for what contradicts a file that is all there is, whichever of the two came first."""
    if has_all(campaign):
        raise ImportRefused(WAS_ALL)
    if is_all and campaign.items.exists():
        raise ImportRefused(NOT_ALL)


def has_all(campaign: Campaign) -> bool:
    """Return whether the campaign's judgments were imported as all there is."""
    events = Event.objects.filter(subject=f"campaign:{campaign.pk}", verb=IMPORTED_JUDGMENTS)
    return events.filter(detail__is_complete=True).exists()


def record_all(
    campaign: Campaign, file: JudgmentFile, source_name: str, n_judgments: int, actor: User | None
) -> None:
    """Have the items of `add_judgments` recorded as everything there is, each with certainty."""
    with connection.cursor() as cursor:
        cursor.execute(JUDGED_PAIRS)
        rows = cursor.fetchall()
    if not rows:
        raise ImportRefused(f"{file.name}: no judgments in the file")
    topic_ids, doc_ids, items = zip(*rows, strict=True)
    certain = [1.0] * len(rows)
    codes = METHOD_CODES[0]
    form = file.format.key
    record_sample(
        ImportedSample(
            campaign, form, codes, source_name, topic_ids, doc_ids, certain, items, actor, True, n_judgments
        )
    )
