"""What the judgments of an item say together: the bronze score whose classes the audit corrects."""

from analytics.frames import CampaignArrays, Ints
from analytics.labels import vote_classes
from judging.models import Campaign


def bronze_classes(arrays: CampaignArrays, campaign: Campaign) -> Ints:
    """Return the class of every judged item, ordered: better scores have higher numbers.

    Any score serves: it decides how narrow the corrected interval is, never whether it is right. It may use
    judgments and gold checks, but not the audit, whose items it would otherwise know.
    """
    return vote_classes(arrays.label_item, arrays.label_grade, arrays.judged.size)
