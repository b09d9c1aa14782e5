"""The ground floor: people, jobs, and the log of what happened."""

from touchstone.models.hooks import Webhook, WebhookDelivery
from touchstone.models.identities import Identity
from touchstone.models.letters import Letter, LetterRefusal
from touchstone.models.links import AccountLink
from touchstone.models.log import Erasure, Event, Seal, ledger_head, record
from touchstone.models.users import ApiToken, User, UserManager, all_scopes, user_of
from touchstone.models.work import IdempotentRequest, Job, RateCounter, WorkerHeartbeat

__all__ = [
    "AccountLink",
    "ApiToken",
    "Erasure",
    "Event",
    "IdempotentRequest",
    "Identity",
    "Job",
    "Letter",
    "LetterRefusal",
    "RateCounter",
    "Seal",
    "User",
    "UserManager",
    "Webhook",
    "WebhookDelivery",
    "WorkerHeartbeat",
    "all_scopes",
    "ledger_head",
    "record",
    "user_of",
]
