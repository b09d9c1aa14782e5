from django.urls import path

from judging.views import crowd, frame, join, judge, machine, messages, questions, training

app_name = "judging"
urlpatterns = [
    path("judge/", judge.home, name="home"),
    path("judge/<uuid:campaign_id>/", judge.judge, name="judge"),
    path("judge/messages/<int:message_id>/read/", messages.read, name="message-read"),
    path("judge/<uuid:campaign_id>/my-data/", judge.my_data, name="my-data"),
    path("frame/<uuid:token>/", frame.frame, name="frame"),
    path("api/v1/campaigns/<uuid:campaign_id>/claim", judge.ItemClaim.as_view(), name="claim"),
    path("api/v1/campaigns/<uuid:campaign_id>/judgments", judge.JudgmentSubmission.as_view(), name="submit"),
    path("api/v1/campaigns/<uuid:campaign_id>/revisions", judge.JudgmentRevision.as_view(), name="revise"),
    path("api/v1/campaigns/<uuid:campaign_id>/heartbeat", judge.LeaseExtension.as_view(), name="heartbeat"),
    path("api/v1/campaigns/<uuid:campaign_id>/history", judge.JudgmentHistory.as_view(), name="history"),
    path("api/v1/campaigns/<uuid:campaign_id>/batch", machine.MachineBatch.as_view(), name="batch"),
    path(
        "api/v1/campaigns/<uuid:campaign_id>/instructions",
        machine.MachineInstructions.as_view(),
        name="instructions",
    ),
    path(
        "api/v1/me/campaigns/<uuid:campaign_id>/questions",
        questions.MyQuestions.as_view(),
        name="questions",
    ),
    path("join/<uuid:token>/", join.join, name="join"),
    path("hit/<uuid:entry_key>/", crowd.hit, name="hit"),
    path("hit/<uuid:entry_key>/start/", crowd.hit_start, name="hit-start"),
    path("study/<uuid:entry_key>/", crowd.study, name="study"),
    path("complete/<uuid:campaign_id>/", crowd.complete, name="complete"),
    path("judge/<uuid:campaign_id>/consent/", join.consent, name="consent"),
    path("judge/<uuid:campaign_id>/training/", training.page, name="training"),
    path("frame/training/<uuid:campaign_id>/<int:position>/", training.frame, name="training-frame"),
]
