from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from judging.services.imported_samples import ImportedSample


class SamplingConfig(AppConfig):
    name = "sampling"

    def ready(self) -> None:
        from judging.services.imported_samples import record_samples_with

        record_samples_with(_record_draw)


def _record_draw(sample: "ImportedSample") -> None:
    """Record what an import brought; the libraries of frames load only when there is a sample."""
    from sampling.services.foreign_draws import record_foreign_draw

    record_foreign_draw(sample)
