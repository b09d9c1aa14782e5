"""The addresses of this package, below a campaign's."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from analytics.views.api import evidence, plots, releases, results, runs


class Picture(StringConverter):
    """A picture that there is: another name is no address."""

    regex = "|".join(sorted(plots.PICTURES, key=len, reverse=True))


register_converter(Picture, "picture")
API = "api/v1/campaigns/<uuid:campaign_id>"
RELEASE = f"{API}/releases/<uuid:release_id>"
urlpatterns = [
    path(f"{API}/measures", results.MeasuresView.as_view(), name="api-measures"),
    path(f"{API}/estimates", results.EstimatesView.as_view(), name="api-estimates"),
    path(f"{API}/comparisons", results.ComparisonsView.as_view(), name="api-comparisons"),
    path(f"{API}/comparison", results.ComparisonView.as_view(), name="api-comparison"),
    path(f"{API}/ranking", results.RankingView.as_view(), name="api-ranking"),
    path(f"{API}/computations", evidence.ComputationsView.as_view(), name="api-computations"),
    path(
        f"{API}/computations/<int:computation_id>",
        evidence.ComputationView.as_view(),
        name="api-computation",
    ),
    path(f"{API}/confusions", evidence.ConfusionsView.as_view(), name="api-confusions"),
    path(f"{API}/flags", evidence.FlagsView.as_view(), name="api-flags"),
    path(f"{API}/audit-forecasts", evidence.ForecastsView.as_view(), name="api-audit-forecasts"),
    path(f"{API}/disputed-items", evidence.DisputedItemsView.as_view(), name="api-disputed-items"),
    path(f"{API}/plots", plots.PicturesView.as_view(), name="api-plots"),
    path(f"{API}/plots/<picture:plot>", plots.PictureView.as_view(), name="api-plot"),
    path(f"{API}/runs", runs.UploadView.as_view(), name="api-runs"),
    path(f"{API}/run-estimate", runs.RunEstimateView.as_view(), name="api-run-estimate"),
    path(f"{API}/releases", releases.ReleasesView.as_view(), name="api-releases"),
    path(RELEASE, releases.ReleaseView.as_view(), name="api-release"),
    path(f"{RELEASE}/download", releases.DownloadView.as_view(), name="api-release-download"),
    path(f"{RELEASE}/citation", releases.CitationView.as_view(), name="api-release-citation"),
    path(f"{RELEASE}/changes", releases.ChangesView.as_view(), name="api-release-changes"),
    path(f"{RELEASE}/withdraw", releases.WithdrawView.as_view(), name="api-release-withdraw"),
    path(f"{RELEASE}/forget-key", releases.ForgetKeyView.as_view(), name="api-release-forget-key"),
]
