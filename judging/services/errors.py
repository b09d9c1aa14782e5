"""Why a request is refused. One handler (touchstone/views.py) turns these into HTTP."""

from judging.refusal import Refused as Refused


class GradeOffScale(Refused):
    title = "This grade is not on the campaign's scale"


class NewerWord(Refused):
    """What is to be taken back is not the newest word on its item, or was taken back before."""

    status = 409
    title = "A newer word on this document counts"


class LeaseUnknown(Refused):
    """No such lease, or somebody else's: both look the same from outside."""

    status = 404
    title = "This item was not given to you"


class TokenReused(Refused):
    status = 409
    title = "This request was already answered with another grade"


class AlreadyJudged(Refused):
    status = 409
    title = "You have already judged this document; use Undo to change your grade"


class NotYetJudged(Refused):
    status = 409
    title = "There is no judgment to change yet"


class NotAnAssessor(Refused):
    status = 404
    title = "There is no such campaign"


class AssessorSuspended(Refused):
    status = 403
    title = "A manager has paused your judging in this campaign"


class CampaignNotOpen(Refused):
    status = 409
    title = "This campaign is not open"


class ConsentMissing(Refused):
    status = 409
    title = "You have not agreed to the terms of this campaign yet"


class TrainingMissing(Refused):
    status = 409
    title = "The training comes before the first document"


class ImportRefused(Refused):
    """A file could not be imported; the message is `file:line:column: reason` and nothing was changed."""

    title = "The file was not imported"


class ImportStateWrong(Refused):
    """An import is in another state than the request needs; the message is that state."""

    status = 409
    title = "This cannot be done with the import as it is now"


class InvitationUnusable(Refused):
    """Used up, expired, revoked or never made: all look the same."""

    status = 404
    title = "This invitation cannot be used"


class UserNameTaken(Refused):
    status = 409
    title = "Somebody already has this user name"


class EntryParametersUnclear(Refused):
    title = "This link is not complete"


class NoPlaceLeft(Refused):
    status = 409
    title = "All places are taken"


class TrainingFixed(Refused):
    status = 409
    title = "The training can no longer be changed"


class TrainingNotPossible(Refused):
    status = 409
    title = "The training items cannot be chosen"


class TrainingOver(Refused):
    status = 409
    title = "This training is over"


class NotAMachine(Refused):
    status = 403
    title = "Only machine assessors may do this"


class NotFound(Refused):
    """What one may not see, or what was deleted meanwhile: looks like what never was."""

    status = 404
    title = "There is no such thing"


class ConfirmationWrong(Refused):
    title = "The name does not match. Nothing was changed"


class CollectionBusy(Refused):
    status = 409
    title = "An import or a draw is using this collection; try again when it is done"


class CollectionDeleted(Refused):
    status = 409
    title = "The collection is deleted; restore it first"


class MembersUnfit(Refused):
    title = "Only managers and researchers can be members"


class MessageUnfit(Refused):
    title = "A message has 1 to 2,000 characters"


class TooManyQuestions(Refused):
    status = 409
    title = "20 of your questions wait for an answer already"


class QuestionSecret(Refused):
    """For managers alone: assessors never meet it."""

    status = 409
    title = "The document is a check or an audit for this assessor; say that the answer does not give it away"


class KindUnknown(Refused):
    title = "Unknown kind of judging"


class OrderRefused(Refused):
    status = 409
    title = "This order of judging cannot be chosen"


class LabelScoreUnknown(Refused):
    title = "Unknown aggregated label"


class AssessorKnown(Refused):
    status = 409
    title = "This user is already an assessor of the campaign"


class NameTaken(Refused):
    status = 409
    title = "This name is already taken; choose another one"


class CorrectionRefused(Refused):
    title = "This cannot be corrected so"


class CorrectedMeanwhile(Refused):
    status = 409
    title = "Somebody else corrected this meanwhile; look at it again"
