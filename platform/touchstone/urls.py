"""All addresses. Identifiers in them are random; nothing in an address tells what an item is for."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from touchstone import (
    account,
    languages,
    letter_pages,
    link_pages,
    logins,
    sign_on_pages,
    token_pages,
    views,
    webhook_pages,
)

urlpatterns = [
    path("", views.home, name="home"),
    path("login/", logins.Login.as_view(), name="login"),
    path("login/forgotten/", link_pages.password_request, name="forgotten"),
    path("login/invited/<str:token>/", link_pages.invitation, name="link-invitation"),
    path("login/password/<str:token>/", link_pages.new_password, name="link-password"),
    path("login/address/<str:token>/", link_pages.address, name="link-address"),
    path("login/company/", sign_on_pages.begin, name="company"),
    path("login/company/back/", sign_on_pages.come_back, name="company-back"),
    path("login/company/link/", sign_on_pages.link, name="company-link"),
    path("login/company/invited/<str:token>/", sign_on_pages.begin_invited, name="company-invitation"),
    path("login/company/password/<str:token>/", sign_on_pages.begin_once, name="company-password"),
    path("login/company/join/<uuid:token>/", sign_on_pages.begin_campaign, name="company-join"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("language/", languages.choose, name="language"),
    path("account/", account.account, name="account"),
    path("account/tokens/", token_pages.tokens, name="account-tokens"),
    path("account/tokens/<int:token_id>/revoke/", token_pages.revoke, name="account-token-revoke"),
    path("account/webhooks/", webhook_pages.webhooks, name="account-webhooks"),
    path("account/webhooks/<uuid:webhook_id>/switch/", webhook_pages.switch, name="account-webhook-switch"),
    path("account/webhooks/<uuid:webhook_id>/test/", webhook_pages.test, name="account-webhook-test"),
    path("account/letters/", letter_pages.letters, name="account-letters"),
    path("letters/off/<str:token>/", letter_pages.off, name="letters-off"),
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
