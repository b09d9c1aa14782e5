"""What else a generated client can change on the way of `generated_walk.py`: of an open campaign, then of a release."""

import io
import uuid

from generated_walk import Walker
from touchstone_client import models
from touchstone_client.api.adjudications import adjudication_create
from touchstone_client.api.assessors import (
    assessor_message_send,
    assessor_rules_change,
    assessor_status_set,
    assessors_list,
)
from touchstone_client.api.audits import audit_schedule_update
from touchstone_client.api.campaigns import campaign_delete, campaign_read, campaign_restore
from touchstone_client.api.collections import (
    collection_create,
    collection_delete,
    collection_restore,
    members_set,
)
from touchstone_client.api.conditions import conditions_create
from touchstone_client.api.consent import consent_set
from touchstone_client.api.documents import (
    document_correct,
    document_old_words_requeue,
    documents_list,
)
from touchstone_client.api.families import families_create
from touchstone_client.api.gold_answers import gold_answer_correct, gold_answers_list
from touchstone_client.api.imports import import_create, import_keep, import_take_back
from touchstone_client.api.invitations import invitation_revoke, invitations_list
from touchstone_client.api.items import items_list
from touchstone_client.api.leases import leases_release_expired
from touchstone_client.api.me import my_consent_give, my_message_mark_read, my_messages_list
from touchstone_client.api.questions import question_answer, question_close, questions_list
from touchstone_client.api.releases import releases_forget_key, releases_withdraw
from touchstone_client.api.runs import run_set_aside, run_take_in, runs_list
from touchstone_client.api.topic_checks import topic_checks_create, topic_findings_create
from touchstone_client.api.topic_teams import topic_teams_set
from touchstone_client.api.topics import (
    topic_correct,
    topic_old_words_requeue,
    topics_list,
)
from touchstone_client.api.webhooks import webhooks_list, webhooks_update
from touchstone_client.types import File


def lead(manager: Walker, person: Walker, campaign: uuid.UUID) -> None:
    """Do what a manager does with people while a campaign is open."""
    named = {one.username: one for one in manager.ask(assessors_list, campaign).results}
    who = named["walking-person"].id
    rules = models.PatchedRulesRequest(quota=500, team="a", first_topics=["t0"])
    assert manager.ask(assessor_rules_change, campaign, who, body=rules).quota == 500
    teams = models.TopicTeamsRequest(team="a", topics=["t1"])
    manager.ask(topic_teams_set, campaign, body=teams)
    manager.ask(
        assessor_message_send, campaign, who, body=models.MessageRequest(text="Well done"), status=201
    )
    manager.ask(audit_schedule_update, campaign, body=models.PatchedScheduleRequest(is_active=False))
    asked = [one for one in manager.ask(questions_list, campaign).results if one.is_from_assessor]
    answer = models.AnswerRequest(text="That of the report.", is_sure=True)
    manager.ask(question_answer, campaign, asked[0].id, body=answer, status=201)
    manager.ask(question_close, campaign, asked[0].id)
    for message in person.ask(my_messages_list).results:
        person.ask(my_message_mark_read, message.id)
    manager.ask(consent_set, campaign, body=models.ConsentTextRequest(text="Your grades are published."))
    person.ask(my_consent_give, campaign, body=models.AgreementRequest(agrees=True))
    status = models.StatusRequestStatus
    for one in (status.SUSPENDED, status.ACTIVE):
        manager.ask(assessor_status_set, campaign, who, body=models.StatusRequest(status=one))
    invitation = manager.ask(invitations_list, campaign).results[0]
    manager.ask(invitation_revoke, campaign, invitation.id)
    manager.ask(leases_release_expired, campaign)


def decide(manager: Walker, campaign: uuid.UUID) -> None:
    """Answer what only a manager can, about a campaign's numbers."""
    item = manager.ask(items_list, campaign).results[0].id
    verdict = models.AdjudicationRequest(item=item, grade=1, reason="Both are right")
    manager.ask(adjudication_create, campaign, body=verdict, status=201)
    conditions = models.ConditionsRequest(same_judges=True, same_period=True, blind_to_system=True)
    manager.ask(conditions_create, campaign, body=conditions, status=201)
    manager.ask(families_create, campaign, body=models.DeclarationRequest(family="all"), status=201)
    plan = manager.ask(
        topic_checks_create,
        campaign,
        body=models.TopicPlanRequest(n_bad_good=0, n_bad_limit=2),
        status=201,
    )
    finding = models.FindingRequest(topic_id=plan.checks[0].topic_id, is_bad=False)
    manager.ask(topic_findings_create, campaign, plan.sequence, body=finding, status=201)


def correct(manager: Walker, collection: uuid.UUID, campaign: uuid.UUID) -> None:
    """Correct words and gold, set a run aside, take an import back."""
    again = models.OldWordsRequest(campaigns=[campaign])
    document = manager.ask(documents_list, collection).results[-1].id
    body = models.DocumentCorrectionRequest(why="cut off", text="All of the text")
    manager.ask(document_correct, collection, document, body=body, status=201)
    manager.ask(document_old_words_requeue, collection, document, body=again)
    topic = manager.ask(topics_list, collection).results[-1].id
    body = models.TopicCorrectionRequest(why="too short", description="What is needed")
    manager.ask(topic_correct, collection, topic, body=body, status=201)
    manager.ask(topic_old_words_requeue, collection, topic, body=again)
    answer = manager.ask(gold_answers_list, collection).results[0]
    body = models.GoldCorrectionRequest(why="misread", grade=(answer.grade + 1) % 4)
    manager.ask(gold_answer_correct, collection, answer.id, body=body, status=201)
    late = next(one for one in manager.ask(runs_list, collection).results if one.run_id == "late")
    manager.ask(run_set_aside, collection, late.id, body=models.WithReasonRequest(why="a faulty index"))
    manager.ask(run_take_in, collection, late.id)
    files = [File(io.BytesIO(b"t9\tAnother need\n"), "other.tsv", "text/plain")]
    seen = manager.ask(
        import_create, collection, body=models.ImportRequest(files=files, look=True), status=202
    )
    manager.wait(seen.job)
    topics = models.FileChoiceRequest(name="other.tsv", kind=models.FileChoiceRequestKind.TOPICS)
    manager.wait(manager.ask(import_keep, seen.id, body=models.KeepRequest(files=[topics]), status=202).job)
    manager.ask(import_take_back, seen.id, body=models.WithReasonRequest(why="the wrong file"))
    members = models.MembersRequest(is_restricted=True, members=["walking-manager"])
    manager.ask(members_set, collection, body=members)


def end(manager: Walker, campaign: uuid.UUID, release: uuid.UUID) -> None:
    """Withdraw what was made, delete it, and have it back."""
    body = models.WithdrawRequest(reason="Another one follows")
    assert manager.ask(releases_withdraw, campaign, release, body=body).withdrawn_reason == body.reason
    assert not manager.ask(releases_forget_key, campaign, release).has_key
    hook = manager.ask(webhooks_list).results[0]
    manager.ask(webhooks_update, hook.id, body=models.PatchedWebhookChangeRequest(is_active=False))
    name = manager.ask(campaign_read, campaign).name
    manager.ask(campaign_delete, campaign, body=models.ConfirmationRequest(confirmation=name))
    manager.ask(campaign_restore, campaign, body=models.RestoreRequest())
    empty = manager.ask(collection_create, body=models.CollectionRequest(name="Soon gone"), status=201)
    manager.ask(collection_delete, empty.id, body=models.ConfirmationRequest(confirmation="Soon gone"))
    manager.ask(collection_restore, empty.id, body=models.RestoreRequest(name="Back again"))
