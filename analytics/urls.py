from django.urls import path, re_path

from analytics.views import (
    adjudication,
    analyses,
    assessors,
    audits,
    design,
    errors,
    events,
    manage,
    people,
    planner,
    research,
    reuse,
    said,
    setup,
)
from analytics.views.api.routes import urlpatterns as api_urlpatterns
from analytics.views.routes import urlpatterns as results_urlpatterns

app_name = "analytics"
UUID = "(?P<campaign_id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
urlpatterns = [
    path("manage/campaigns/<uuid:campaign_id>/", manage.campaign, name="campaign"),
    path("manage/setup/", setup.new, name="setup-new"),
    path(
        "manage/collections/<uuid:collection_id>/setup/<slug:step>/",
        setup.of_collection,
        name="setup-collection",
    ),
    path("manage/campaigns/<uuid:campaign_id>/setup/", setup.of_campaign, name="setup"),
    path("manage/campaigns/<uuid:campaign_id>/setup/<slug:step>/", setup.of_campaign, name="setup-step"),
    path("manage/campaigns/<uuid:campaign_id>/assessors/", people.assessors, name="assessors"),
    path("manage/campaigns/<uuid:campaign_id>/adjudication/", adjudication.adjudication, name="adjudication"),
    path("manage/campaigns/<uuid:campaign_id>/adjudication/decide/", adjudication.decide, name="decide"),
    path(
        "manage/campaigns/<uuid:campaign_id>/adjudication/<uuid:item_id>/document/",
        adjudication.document,
        name="adjudication-document",
    ),
    path("manage/campaigns/<uuid:campaign_id>/events/", events.events, name="events"),
    path("manage/campaigns/<uuid:campaign_id>/comments/", said.said, name="said"),
    path("manage/campaigns/<uuid:campaign_id>/design/", design.design, name="design"),
    path("manage/campaigns/<uuid:campaign_id>/layout/", design.lay_out, name="layout"),
    path("manage/campaigns/<uuid:campaign_id>/audits/", audits.audits, name="audits"),
    path("manage/campaigns/<uuid:campaign_id>/audits/score/", audits.score, name="audits-score"),
    path("manage/campaigns/<uuid:campaign_id>/errors/", errors.errors, name="errors"),
    path("manage/campaigns/<uuid:campaign_id>/recompute/", manage.recompute_now, name="recompute"),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/<int:assessor_id>/",
        assessors.assessor,
        name="assessor",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/<int:assessor_id>/requeue/",
        assessors.requeue,
        name="requeue",
    ),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/<int:assessor_id>/message/",
        assessors.send_message,
        name="message",
    ),
    path("results/", research.results, name="results"),
    path("results/<uuid:campaign_id>/", research.campaign, name="campaign-results"),
    path("results/<uuid:campaign_id>/pair/", research.pair, name="pair"),
    path("results/<uuid:campaign_id>/pair/methods/", analyses.methods, name="methods"),
    path("results/<uuid:campaign_id>/agreement/", analyses.agreement, name="agreement"),
    path("results/<uuid:campaign_id>/analyse/<slug:what>/", analyses.analyse, name="analyse"),
    path("results/<uuid:campaign_id>/conditions/", analyses.conditions, name="conditions"),
    path("api/v1/campaigns/<uuid:campaign_id>/analyses", analyses.api_analyses, name="api-analyses"),
    path("api/v1/campaigns/<uuid:campaign_id>/conditions", analyses.api_conditions, name="api-conditions"),
    path("results/<uuid:campaign_id>/planner/", planner.planner, name="planner"),
    path("api/v1/campaigns/<uuid:campaign_id>/planner", planner.api_planner, name="api-planner"),
    path("results/<uuid:campaign_id>/reuse/", reuse.reuse, name="reuse"),
    path("results/<uuid:campaign_id>/reuse/draw/", reuse.draw, name="reuse-draw"),
    path("api/v1/campaigns/<uuid:campaign_id>/reuse", reuse.api_reuse, name="api-reuse"),
    re_path(rf"^results/{UUID}/forest\.(?P<file_format>svg|png|csv)$", research.download_plot, name="plot"),
    re_path(rf"^results/{UUID}/export/(?P<kind>qrels|qrels_jg|prels)$", research.export, name="export"),
    *results_urlpatterns,
    *api_urlpatterns,
]
