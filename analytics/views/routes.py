"""The addresses of the researcher's pages below a campaign's results."""

from django.urls import path

from analytics.views import pairs, ranking, releases, run_upload, studies

RESULTS = "results/<uuid:campaign_id>"
RELEASE = f"{RESULTS}/releases/<uuid:release_id>"
urlpatterns = [
    path(f"{RESULTS}/pairs/", pairs.pairs, name="pairs"),
    path(f"{RESULTS}/ranking/", ranking.ranking, name="ranking"),
    path(f"{RESULTS}/topics/", studies.topics, name="topics"),
    path(f"{RESULTS}/sensitivity/", studies.sensitivity, name="sensitivity"),
    path(f"{RESULTS}/runs/upload/", run_upload.upload, name="run-upload"),
    path(f"{RESULTS}/releases/", releases.releases, name="releases"),
    path(f"{RESULTS}/releases/new/", releases.new, name="release-new"),
    path(f"{RELEASE}/", releases.release, name="release"),
    path(f"{RELEASE}/download", releases.download, name="release-download"),
    path(f"{RELEASE}/cancel/", releases.cancel, name="release-cancel"),
    path(f"{RELEASE}/withdraw/", releases.withdraw, name="release-withdraw"),
    path(f"{RELEASE}/forget-key/", releases.forget_key, name="release-forget"),
]
