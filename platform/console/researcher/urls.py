"""The addresses of the researcher's pages, below results/."""

from django.urls import path, re_path

from analytics.charts.files import PLOT_FORMATS
from console.researcher import (
    analyses,
    no_judgments,
    pairs,
    planner,
    public_releases,
    ranking,
    releases,
    results,
    reuse,
    rounds,
    studies,
    upload,
)

RESULTS = "results/<uuid:campaign_id>"
RELEASE = f"{RESULTS}/releases/<uuid:release_id>"
PUBLIC = "releases/<uuid:campaign_id>/<str:version>"
UUID = "(?P<campaign_id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
PLOTS = "|".join(one.key for one in PLOT_FORMATS)
urlpatterns = [
    path("results/", results.results, name="results"),
    path("results/rounds/", rounds.rounds, name="rounds"),
    path("results/rounds/compute/", rounds.compute, name="rounds-compute"),
    path("results/<uuid:campaign_id>/", results.campaign, name="campaign-results"),
    path("results/<uuid:campaign_id>/pair/", results.pair, name="pair"),
    path("results/<uuid:campaign_id>/pair/methods/", analyses.papers, name="papers"),
    path("results/<uuid:campaign_id>/agreement/", analyses.agreement, name="agreement"),
    path("results/<uuid:campaign_id>/analyse/<slug:what>/", analyses.analyse, name="analyse"),
    path("results/<uuid:campaign_id>/family/", pairs.declare, name="family"),
    path("results/<uuid:campaign_id>/conditions/", analyses.conditions, name="conditions"),
    path("results/<uuid:campaign_id>/planner/", planner.planner, name="planner"),
    path("results/<uuid:campaign_id>/planner/simulate/", planner.simulate, name="planner-simulate"),
    path("results/<uuid:campaign_id>/reuse/", reuse.reuse, name="reuse"),
    path("results/<uuid:campaign_id>/reuse/draw/", reuse.draw, name="reuse-draw"),
    re_path(rf"^results/{UUID}/forest\.(?P<file_format>{PLOTS})$", results.download_plot, name="plot"),
    path("results/<uuid:campaign_id>/export/<slug:kind>", results.export, name="export"),
    path(f"{RESULTS}/pairs/", pairs.pairs, name="pairs"),
    path(f"{RESULTS}/ranking/", ranking.ranking, name="ranking"),
    path(f"{RESULTS}/topics/", studies.topics, name="topics"),
    path(f"{RESULTS}/sensitivity/", studies.sensitivity, name="sensitivity"),
    path(f"{RESULTS}/no-judgments/", no_judgments.no_judgments, name="no-judgments"),
    path(f"{RESULTS}/runs/upload/", upload.upload, name="run-upload"),
    path(f"{RESULTS}/releases/", releases.releases, name="releases"),
    path(f"{RESULTS}/releases/new/", releases.new, name="release-new"),
    path(f"{RELEASE}/", releases.release, name="release"),
    path(f"{RELEASE}/download", releases.download, name="release-download"),
    path(f"{RELEASE}/cancel/", releases.cancel, name="release-cancel"),
    path(f"{RELEASE}/withdraw/", releases.withdraw, name="release-withdraw"),
    path(f"{RELEASE}/forget-key/", releases.forget_key, name="release-forget"),
    path(f"{RELEASE}/publish/", releases.publish, name="release-publish"),
    path(f"{RELEASE}/unpublish/", releases.unpublish, name="release-unpublish"),
    path(f"{PUBLIC}/", public_releases.public_release, name="public-release"),
    path(f"{PUBLIC}/download", public_releases.public_download, name="public-release-download"),
]
