from django.urls import include, path

from judging.views import (
    assess,
    collections,
    crowd,
    entry,
    frame,
    join,
    letters,
    machine,
    manage,
    removal,
    training,
)

app_name = "judging"
urlpatterns = [
    path("judge/", assess.home, name="home"),
    path("judge/<uuid:campaign_id>/", assess.judge, name="judge"),
    path("judge/messages/<int:message_id>/read/", letters.read, name="message-read"),
    path("judge/<uuid:campaign_id>/my-data/", assess.my_data, name="my-data"),
    path("frame/<uuid:token>/", frame.frame, name="frame"),
    path("api/v1/campaigns/<uuid:campaign_id>/claim", assess.claim, name="claim"),
    path("api/v1/campaigns/<uuid:campaign_id>/judgments", assess.submit, name="submit"),
    path("api/v1/campaigns/<uuid:campaign_id>/revisions", assess.revise, name="revise"),
    path("api/v1/campaigns/<uuid:campaign_id>/heartbeat", assess.heartbeat, name="heartbeat"),
    path("api/v1/campaigns/<uuid:campaign_id>/history", assess.history, name="history"),
    path("api/v1/campaigns/<uuid:campaign_id>/batch", machine.batch, name="batch"),
    path("api/v1/campaigns/<uuid:campaign_id>/instructions", machine.instructions, name="instructions"),
    path("api/v1/", include("judging.views.api.urls")),
    path("manage/", manage.overview, name="manage"),
    path("manage/collections/new/", collections.new_collection, name="manage-collection-new"),
    path("manage/collections/<uuid:collection_id>/", collections.collection, name="manage-collection"),
    path(
        "manage/collections/<uuid:collection_id>/edit/",
        collections.edit_collection,
        name="manage-collection-edit",
    ),
    path("manage/collections/<uuid:collection_id>/members/", collections.members, name="manage-members"),
    path("manage/collections/<uuid:collection_id>/runs/<int:run_id>/", collections.run, name="manage-run"),
    path(
        "manage/collections/<uuid:collection_id>/delete/",
        removal.delete_collection,
        name="manage-collection-delete",
    ),
    path("manage/deleted/", removal.deleted, name="manage-deleted"),
    path(
        "manage/campaigns/<uuid:campaign_id>/delete/", removal.delete_campaign, name="manage-campaign-delete"
    ),
    path("manage/campaigns/new/", manage.new_campaign, name="manage-campaign-new"),
    path("manage/campaigns/<uuid:campaign_id>/edit/", manage.edit_campaign, name="manage-campaign-edit"),
    path("manage/campaigns/<uuid:campaign_id>/topics/", manage.topic_rules, name="manage-topics"),
    path("manage/campaigns/<uuid:campaign_id>/leases/", manage.held_leases, name="manage-leases"),
    path(
        "manage/campaigns/<uuid:campaign_id>/leases/expired/release/",
        manage.release_expired_leases,
        name="manage-leases-release",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/leases/<uuid:token>/release/",
        manage.release_lease,
        name="manage-lease-release",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/state/", manage.set_campaign_state, name="manage-campaign-state"
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/add/", manage.add_assessor, name="manage-assessor-add"
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/<int:assessor_id>/status/",
        manage.set_assessor_status,
        name="manage-assessor-status",
    ),
    path("join/<uuid:token>/", join.join, name="join"),
    path("hit/<uuid:entry_key>/", crowd.hit, name="hit"),
    path("hit/<uuid:entry_key>/start/", crowd.hit_start, name="hit-start"),
    path("study/<uuid:entry_key>/", crowd.study, name="study"),
    path("complete/<uuid:campaign_id>/", crowd.complete, name="complete"),
    path("judge/<uuid:campaign_id>/consent/", join.consent, name="consent"),
    path("judge/<uuid:campaign_id>/training/", training.page, name="training"),
    path("frame/training/<uuid:campaign_id>/<int:position>/", training.frame, name="training-frame"),
    path("manage/campaigns/<uuid:campaign_id>/entry/", entry.manage, name="manage-entry"),
    path("manage/campaigns/<uuid:campaign_id>/entry/invitations/", entry.invite, name="entry-invite"),
    path(
        "manage/campaigns/<uuid:campaign_id>/entry/invitations/<int:invitation_id>/revoke/",
        entry.revoke,
        name="entry-revoke",
    ),
    path("manage/campaigns/<uuid:campaign_id>/entry/market/", entry.set_market, name="entry-market"),
    path("manage/campaigns/<uuid:campaign_id>/entry/codes/", entry.check_codes, name="entry-codes"),
    path("manage/campaigns/<uuid:campaign_id>/entry/erase/", entry.erase, name="entry-erase"),
    path("manage/campaigns/<uuid:campaign_id>/entry/consent/", entry.set_consent, name="entry-consent"),
    path("manage/campaigns/<uuid:campaign_id>/entry/training/", entry.choose_training, name="entry-training"),
    path(
        "manage/campaigns/<uuid:campaign_id>/entry/training/rules/",
        entry.set_training_rules,
        name="entry-training-rules",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/entry/training/explanations/",
        entry.set_explanations,
        name="entry-explanations",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/entry/training/<int:assessor_id>/attempt/",
        entry.grant_attempt,
        name="entry-attempt",
    ),
]
