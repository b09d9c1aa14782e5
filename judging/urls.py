from django.urls import path

from judging.views import assess, manage

app_name = "judging"
urlpatterns = [
    path("judge/", assess.home, name="home"),
    path("judge/<uuid:campaign_id>/", assess.judge, name="judge"),
    path("frame/<uuid:token>/", assess.frame, name="frame"),
    path("api/v1/campaigns/<uuid:campaign_id>/claim", assess.claim, name="claim"),
    path("api/v1/campaigns/<uuid:campaign_id>/judgments", assess.submit, name="submit"),
    path("api/v1/campaigns/<uuid:campaign_id>/revisions", assess.revise, name="revise"),
    path("api/v1/campaigns/<uuid:campaign_id>/history", assess.history, name="history"),
    path("manage/", manage.overview, name="manage"),
    path("manage/collections/new/", manage.new_collection, name="manage-collection-new"),
    path("manage/collections/<uuid:collection_id>/", manage.collection, name="manage-collection"),
    path("manage/campaigns/new/", manage.new_campaign, name="manage-campaign-new"),
    path(
        "manage/campaigns/<uuid:campaign_id>/state/", manage.set_campaign_state, name="manage-campaign-state"
    ),
    path("manage/campaigns/<uuid:campaign_id>/assessors/", manage.add_assessor, name="manage-assessor-add"),
    path(
        "manage/campaigns/<uuid:campaign_id>/assessors/<int:assessor_id>/status/",
        manage.set_assessor_status,
        name="manage-assessor-status",
    ),
]
