"""The facts: collections and runs, campaigns and their items, slots and judgments.

The database keeps the promises (see migrations/0002_facts_are_kept.py for the triggers): k judgments an item,
one an assessor and item, grades on the scale, judgments never changed and never deleted.
"""

from judging.models.campaigns import Assessor, Campaign, CampaignTopic, Grade, Scale
from judging.models.collections import (
    Collection,
    CollectionMember,
    Document,
    DocumentVersion,
    GoldAnswer,
    GoldVersion,
    Run,
    ScoreList,
    Topic,
    TopicVersion,
)
from judging.models.entry import (
    ImportedName,
    Invitation,
    Participant,
    TrainingAnswer,
    TrainingGrant,
    TrainingItem,
)
from judging.models.feasibility import PlacesLeft, StuckItem
from judging.models.images import DocumentImage
from judging.models.imports import Import
from judging.models.judgments import (
    IMPORTED_JUDGMENTS,
    Adjudication,
    Item,
    Judgment,
    Lease,
    MachineCall,
    Message,
    Slot,
)
from judging.models.reservations import Reservation

__all__ = [
    "IMPORTED_JUDGMENTS",
    "Adjudication",
    "Assessor",
    "Campaign",
    "CampaignTopic",
    "Collection",
    "CollectionMember",
    "Document",
    "DocumentImage",
    "DocumentVersion",
    "GoldAnswer",
    "GoldVersion",
    "Grade",
    "Import",
    "ImportedName",
    "Invitation",
    "Item",
    "Judgment",
    "Lease",
    "MachineCall",
    "Message",
    "Participant",
    "PlacesLeft",
    "Reservation",
    "Run",
    "Scale",
    "ScoreList",
    "Slot",
    "StuckItem",
    "Topic",
    "TopicVersion",
    "TrainingAnswer",
    "TrainingGrant",
    "TrainingItem",
]
