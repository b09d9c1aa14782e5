"""How people come in: invitations by link, consent, and what stands between an assessor and the first item.

There is no registration: an account is made only by a manager, by an invitation, or by a crowd market's link.
"""

import hashlib
import secrets
import uuid
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from judging.models import Assessor, Campaign, Invitation
from judging.services.errors import InvitationUnusable, UserNameTaken
from touchstone.models import User, record

# Words that mean nothing about whoever gets them: no colours of skin, no sizes, no metals: those are tiers.
_FIRST = """
    amber autumn brisk bright calm candid clear clever coral crisp early even evening fair fresh gentle happy hazel
    honest island jolly kind lively lucky lunar maple marine meadow mellow merry misty morning noble northern opal
    patient polite quick quiet rapid river royal silent simple solar southern spring steady summer sunny swift timely
    tidy valley velvet violet warm western winter witty
"""
_SECOND = """
    acorn anchor arch badge bay beacon bell birch bridge brook canyon cedar chart cliff cloud comet compass cove creek
    delta dune elm ember fern field fjord forest garden glade grove harbor hill inlet iris lagoon lake lantern leaf
    ledger lily lotus mesa mill moss oak orchard path pebble pine planet pond poplar prairie quartz reef ridge shore
    sky slate spruce star stone stream summit tide trail tulip wave willow wind
"""
MOST_USES, MOST_DAYS = 1000, 365


def propose_username() -> str:
    """Return a user name nobody has: two plain words and a number, drawn at random, so that it says nothing."""
    first, second = _FIRST.split(), _SECOND.split()
    while True:
        name = f"{secrets.choice(first)}-{secrets.choice(second)}-{secrets.randbelow(9000) + 1000}"
        if not User.objects.filter(username__iexact=name).exists():
            return name


def propose_password() -> str:
    """Return six plain words and a number, drawn at random: 50 bits, and easy to write down.

    >>> len(propose_password().split("-"))
    7
    """
    pairs = [
        word for _ in range(3) for word in (secrets.choice(_FIRST.split()), secrets.choice(_SECOND.split()))
    ]
    return "-".join([*pairs, str(secrets.randbelow(9000) + 1000)])


# -- invitations ----------------------------------------------------------------------------------------------


def create_invitation(
    *,
    campaign: Campaign,
    user: User,
    tier: str = Assessor.Tier.BRONZE,
    max_uses: int = 1,
    days: int = 14,
    note: str = "",
    team: str = "",
    quota: int | None = None,
) -> Invitation:
    """Make a link that lets `max_uses` people become assessors of the campaign."""
    with transaction.atomic():
        made = Invitation.objects.create(
            campaign=campaign,
            created_by=user,
            tier=tier,
            max_uses=max_uses,
            expires_at=timezone.now() + timedelta(days=days),
            note=note,
            team=team,
            quota=quota,
        )
        record("invited", campaign, actor=user, invitation=made.pk, tier=tier, uses=max_uses, days=days)
    return made


def revoke_invitation(*, invitation: Invitation, user: User) -> None:
    """End an invitation; whoever came in by it stays."""
    with transaction.atomic():
        ended = Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=Now())
        if ended:
            record("revoked an invitation", invitation.campaign, actor=user, invitation=invitation.pk)


def usable_invitation(*, token: uuid.UUID) -> Invitation:
    """Return the invitation. Used up, expired, revoked and never made are one refusal: a link tells nobody which."""
    found = _usable(token).select_related("campaign__collection").first()
    if found is None:
        raise InvitationUnusable
    return found


def _usable(token: uuid.UUID) -> QuerySet[Invitation]:
    return Invitation.objects.filter(
        token=token,
        revoked_at=None,
        expires_at__gt=Now(),
        n_used__lt=F("max_uses"),
        campaign__deleted_at=None,
        campaign__collection__deleted_at=None,
    ).exclude(campaign__state=Campaign.State.CLOSED)


def assessor_by_invitation(*, token: uuid.UUID, user: User) -> Assessor | None:
    """Return the user's assessor in the invitation's campaign: who came in before need not come in again."""
    return Assessor.objects.filter(campaign__invitations__token=token, user=user).first()


def join(*, token: uuid.UUID, user: User) -> Assessor:
    """Make the user an assessor of the invitation's campaign; twice is once.

    The row lock makes everybody wait for whoever is counted before, and PostgreSQL looks at the condition again then.
    """
    with transaction.atomic():
        known = assessor_by_invitation(token=token, user=user)
        if known is not None:
            return known
        invitation = _usable(token).select_for_update(of=["self"]).first()
        if invitation is None:
            raise InvitationUnusable
        campaign = invitation.campaign
        assessor, is_new = Assessor.objects.get_or_create(
            campaign=campaign,
            user=user,
            defaults={"tier": invitation.tier, "team": invitation.team, "quota": invitation.quota},
        )
        if is_new:
            Invitation.objects.filter(pk=invitation.pk).update(n_used=F("n_used") + 1)
            about = {"assessor": user.pk, "tier": invitation.tier, "invitation": invitation.pk}
            record("joined by invitation", campaign, actor=user, **about)
    return assessor


def join_as_new_user(*, token: uuid.UUID, username: str, password: str) -> Assessor:
    """Make an account and join with it, or neither. The account is an ordinary assessor's, whatever was posted."""
    usable_invitation(token=token)  # before a password is hashed for nothing
    user = User(username=username, role=User.Role.ASSESSOR)
    user.set_password(password)  # takes long on purpose: not while a transaction is open
    with transaction.atomic():
        if User.objects.filter(username__iexact=username).exists():
            raise UserNameTaken
        try:
            with transaction.atomic():
                user.save(force_insert=True)
        except IntegrityError as error:  # somebody took the name in the same moment
            raise UserNameTaken from error
        return join(token=token, user=user)


# -- consent, and what comes before the first item ------------------------------------------------------------


def set_consent_text(*, campaign: Campaign, text: str, user: User) -> None:
    """Change what is agreed to. Whoever agreed before is not asked again; the events tell who agreed to which text."""
    with transaction.atomic():
        Campaign.objects.filter(pk=campaign.pk).update(consent=text)
        record("changed the consent text", campaign, actor=user, text=text_mark(text))


def agree(*, assessor: Assessor) -> None:
    """Note that the assessor agreed to the consent text as it is now; twice is once."""
    with transaction.atomic():
        text = Campaign.objects.values_list("consent", flat=True).get(pk=assessor.campaign_id)
        agreed = Assessor.objects.filter(pk=assessor.pk, consented_at=None).update(consented_at=Now())
        if agreed:
            record("agreed", assessor, actor=assessor.user, text=text_mark(text))
    assessor.refresh_from_db(fields=["consented_at"])


def text_mark(text: str) -> str:
    """Return the first twelve digits of the text's SHA-256: which version was shown.

    >>> text_mark("")
    'e3b0c44298fc'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def needs_training(assessor: Assessor) -> bool:
    """Return whether this assessor has to pass the campaign's training: people of bronze and silver tier do."""
    if assessor.kind != Assessor.Kind.HUMAN or assessor.tier == Assessor.Tier.GOLD:
        return False
    return assessor.campaign.training_items.exists()


def next_gate(assessor: Assessor) -> str | None:
    """Return the name of the page that comes before the first item, or None when the assessor may judge."""
    if assessor.campaign.consent and assessor.consented_at is None:
        return "judging:consent"
    if assessor.trained_at is None and needs_training(assessor):
        return "judging:training"
    return None
