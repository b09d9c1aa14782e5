"""What the assessor's screen says about a refusal, by the problem's type.

The refusals themselves (judging/services/errors.py) and the problems of the API stay English: programs read them. The
script of the judging screen and the pages look here, so that both say the same in the reader's language.
"""

from django.utils.translation import gettext_lazy as _

from judging.services.errors import Refused

_NO_CAMPAIGN = (_("There is no such campaign"), _("It was deleted, or you do not work in it."))
_NOT_ALLOWED = (_("You may not do this"), _("Ask a manager if you think you should."))
# The problem's type: a heading, and what to do or know.
TEXTS = {
    "AlreadyJudged": (_("You have already judged this document"), _("Use Undo to change your grade.")),
    "AssessorSuspended": (
        _("A manager has paused your judging in this campaign"),
        _("Everything you judged is kept."),
    ),
    "CampaignNotOpen": (
        _("This campaign is not open"),
        _("Its manager has paused or closed it. Everything you judged is kept."),
    ),
    "ConsentMissing": (
        _("You have not agreed to the terms of this campaign yet"),
        _("Load this page again to read them."),
    ),
    "EntryParametersUnclear": (_("This link is not complete"), ""),
    "Fault": (_("Something went wrong on the server"), ""),
    "Forbidden": _NOT_ALLOWED,
    "GradeOffScale": (_("This grade is not on the campaign's scale"), ""),
    "Invalid": (_("The request is not valid"), ""),
    "InvitationUnusable": (_("This invitation cannot be used"), ""),
    "LeaseUnknown": (_("This document was not given to you"), ""),
    "MessageUnfit": (_("A message has 1 to 2,000 characters"), ""),
    "NoPlaceLeft": (_("All places are taken"), ""),
    "NotAnAssessor": _NO_CAMPAIGN,
    "NotFound": _NO_CAMPAIGN,
    "NotYetJudged": (_("There is no judgment to change yet"), ""),
    "PermissionDenied": _NOT_ALLOWED,
    "TokenReused": (_("This judgment was already stored with another grade"), ""),
    "TooManyQuestions": (
        _("20 of your questions wait for an answer already"),
        _("Ask again when some are answered."),
    ),
    "TrainingMissing": (
        _("The training comes before the first document"),
        _("Load this page again to start it."),
    ),
    "Throttled": (_("Too many requests"), _("Wait a moment, then try again.")),
    "TrainingOver": (_("This training is over"), _("Load this page again to see where you are.")),
    "Unavailable": (
        _("The database cannot answer now"),
        _("Nothing was lost. Please try again in a few seconds."),
    ),
    "UserNameTaken": (_("Somebody already has this user name"), ""),
}


def texts_of(refusal: Refused) -> tuple[str, str]:
    """Return the heading and the advice in the reader's language; what no assessor meets keeps its own sentences."""
    heading, advice = TEXTS.get(type(refusal).__name__, (refusal.title, str(refusal)))
    return str(heading), str(advice)
