"""The addresses of the manager's pages, below manage/."""

from django.urls import path

from console.manager import (
    adjudication,
    assessor,
    assessors,
    audits,
    campaigns,
    collections,
    comments,
    crowd,
    deletion,
    design,
    errors,
    events,
    gold,
    overview,
    rejudging,
    samples,
    setup,
    topic_checks,
)

urlpatterns = [
    path("manage/", campaigns.overview, name="manage"),
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
        deletion.delete_collection,
        name="manage-collection-delete",
    ),
    path("manage/deleted/", deletion.deleted_items, name="manage-deleted"),
    path(
        "manage/campaigns/<uuid:campaign_id>/delete/", deletion.delete_campaign, name="manage-campaign-delete"
    ),
    path("manage/campaigns/new/", campaigns.new_campaign, name="manage-campaign-new"),
    path("manage/campaigns/<uuid:campaign_id>/edit/", campaigns.edit_campaign, name="manage-campaign-edit"),
    path("manage/campaigns/<uuid:campaign_id>/topics/", campaigns.topic_rules, name="manage-topics"),
    path("manage/campaigns/<uuid:campaign_id>/sample/", samples.sample, name="manage-sample"),
    path("manage/campaigns/<uuid:campaign_id>/gold/", gold.gold, name="manage-gold"),
    path("manage/campaigns/<uuid:campaign_id>/leases/", campaigns.held_leases, name="manage-leases"),
    path(
        "manage/campaigns/<uuid:campaign_id>/leases/expired/release/",
        campaigns.release_expired_leases,
        name="manage-leases-release",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/leases/<uuid:token>/release/",
        campaigns.release_lease,
        name="manage-lease-release",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/state/",
        campaigns.set_campaign_state,
        name="manage-campaign-state",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/add/",
        campaigns.add_assessor,
        name="manage-assessor-add",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/<int:assessor_id>/status/",
        campaigns.set_assessor_status,
        name="manage-assessor-status",
    ),
    path("manage/campaigns/<uuid:campaign_id>/entry/", crowd.manage, name="manage-entry"),
    path("manage/campaigns/<uuid:campaign_id>/entry/invitations/", crowd.invite, name="entry-invite"),
    path(
        "manage/campaigns/<uuid:campaign_id>/entry/invitations/<int:invitation_id>/revoke/",
        crowd.revoke,
        name="entry-revoke",
    ),
    path("manage/campaigns/<uuid:campaign_id>/entry/market/", crowd.set_market, name="entry-market"),
    path("manage/campaigns/<uuid:campaign_id>/entry/codes/", crowd.check_codes, name="entry-codes"),
    path("manage/campaigns/<uuid:campaign_id>/entry/erase/", crowd.erase, name="entry-erase"),
    path("manage/campaigns/<uuid:campaign_id>/entry/consent/", crowd.set_consent, name="entry-consent"),
    path("manage/campaigns/<uuid:campaign_id>/entry/training/", crowd.choose_training, name="entry-training"),
    path(
        "manage/campaigns/<uuid:campaign_id>/entry/training/rules/",
        crowd.set_training_rules,
        name="entry-training-rules",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/entry/training/explanations/",
        crowd.set_explanations,
        name="entry-explanations",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/entry/training/<int:assessor_id>/attempt/",
        crowd.grant_attempt,
        name="entry-attempt",
    ),
    path("manage/campaigns/<uuid:campaign_id>/", overview.campaign, name="campaign"),
    path("manage/setup/", setup.new, name="setup-new"),
    path(
        "manage/collections/<uuid:collection_id>/setup/<slug:step>/",
        setup.of_collection,
        name="setup-collection",
    ),
    path("manage/campaigns/<uuid:campaign_id>/setup/", setup.of_campaign, name="setup"),
    path("manage/campaigns/<uuid:campaign_id>/setup/<slug:step>/", setup.of_campaign, name="setup-step"),
    path("manage/campaigns/<uuid:campaign_id>/assessors/", assessors.assessors, name="assessors"),
    path("manage/campaigns/<uuid:campaign_id>/adjudication/", adjudication.adjudication, name="adjudication"),
    path(
        "manage/campaigns/<uuid:campaign_id>/adjudication/again/",
        rejudging.judge_again,
        name="judge-again",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/adjudication/again/preview/",
        rejudging.preview_again,
        name="judge-again-preview",
    ),
    path("manage/campaigns/<uuid:campaign_id>/adjudication/decide/", adjudication.decide, name="decide"),
    path(
        "manage/campaigns/<uuid:campaign_id>/adjudication/<uuid:item_id>/document/",
        adjudication.document,
        name="adjudication-document",
    ),
    path("manage/campaigns/<uuid:campaign_id>/events/", events.events, name="events"),
    path("manage/campaigns/<uuid:campaign_id>/comments/", comments.comments, name="said"),
    path("manage/campaigns/<uuid:campaign_id>/design/", design.design, name="design"),
    path("manage/campaigns/<uuid:campaign_id>/layout/", design.lay_out, name="layout"),
    path("manage/campaigns/<uuid:campaign_id>/audits/", audits.audits, name="audits"),
    path("manage/campaigns/<uuid:campaign_id>/audits/census/", audits.census, name="audits-census"),
    path("manage/campaigns/<uuid:campaign_id>/audits/score/", audits.score, name="audits-score"),
    path(
        "manage/campaigns/<uuid:campaign_id>/audits/topics/", topic_checks.topic_checks, name="topic-checks"
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/audits/topics/simulate/",
        topic_checks.simulate,
        name="topic-checks-simulate",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/audits/topics/<int:check_id>/",
        topic_checks.check,
        name="topic-check",
    ),
    path("manage/campaigns/<uuid:campaign_id>/errors/", errors.errors, name="errors"),
    path("manage/campaigns/<uuid:campaign_id>/recompute/", overview.recompute_now, name="recompute"),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/<int:assessor_id>/",
        assessor.assessor,
        name="assessor",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/<int:assessor_id>/requeue/",
        assessor.requeue,
        name="requeue",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/<int:assessor_id>/message/",
        assessor.send_message,
        name="message",
    ),
]
