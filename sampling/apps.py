from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from judging.services.imported_samples import ImportedGold, ImportedSample


class SamplingConfig(AppConfig):
    name = "sampling"

    def ready(self) -> None:
        from judging.services.imported_samples import record_gold_with, record_samples_with

        record_samples_with(_record_draw)
        record_gold_with(_record_audit)


def _record_draw(sample: "ImportedSample") -> None:
    """Record what an import brought; the libraries of frames load only when there is a sample."""
    from sampling.services.foreign_draws import record_foreign_draw

    record_foreign_draw(sample)


def _record_audit(gold: "ImportedGold") -> str:
    """Record gold that is declared an audit; return what it assumes, and what a test says of that."""
    from sampling.services.gold_audits import record_gold_audit

    return record_gold_audit(gold).declaration_said
