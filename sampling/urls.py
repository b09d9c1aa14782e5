from django.urls import path

from sampling import views

app_name = "sampling"
API = "api/v1/campaigns/<uuid:campaign_id>"
urlpatterns = [
    path(f"{API}/forecast", views.forecast, name="api-forecast"),
    path(f"{API}/draws", views.draws, name="api-draws"),
    path(f"{API}/draws/<int:batch>/frame", views.frame, name="api-frame"),
    path(f"{API}/audits", views.audits, name="api-audits"),
    path(f"{API}/audits/schedule", views.audit_schedule, name="api-audit-schedule"),
    path(f"{API}/audits/<int:sequence>/sample.csv", views.audit_sample, name="api-audit-sample"),
    path(f"{API}/draws/jobs/<uuid:job_id>", views.job, name="api-job"),
]
