"""All addresses. Identifiers in them are random; nothing in an address tells what an item is for."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from touchstone import account, languages, logins, views, webhook_pages

urlpatterns = [
    path("", views.home, name="home"),
    path("login/", logins.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("language/", languages.choose, name="language"),
    path("account/tokens/", account.tokens, name="account-tokens"),
    path("account/tokens/<int:token_id>/revoke/", account.revoke, name="account-token-revoke"),
    path("account/webhooks/", webhook_pages.webhooks, name="account-webhooks"),
    path("account/webhooks/<uuid:webhook_id>/switch/", webhook_pages.switch, name="account-webhook-switch"),
    path("account/webhooks/<uuid:webhook_id>/test/", webhook_pages.test, name="account-webhook-test"),
    path("livez", views.alive, name="livez"),
    path("readyz", views.ready, name="readyz"),
    path("jobs/<uuid:job_id>/", views.job_page, name="job"),
    path("jobs/<uuid:job_id>/cancel/", views.cancel_job, name="cancel-job"),
    path("api/v1/", include("touchstone.api.urls")),
    path("", include("judging.urls")),
    path("", include("console.urls")),
]
handler400 = "touchstone.views.bad_request"
handler403 = "touchstone.views.forbidden"
handler404 = "touchstone.views.not_found"
handler500 = "touchstone.views.fault"
