"""The two routes of benchmarks/chain.py --routes: the same machine's labels, as scores or as judgments.

By score: the labels are imported as scores, a sample is drawn with them as the prior, and a gold judge grades it. By
audit: the machine judges the whole pool, and a gold judge audits as many documents, in expectation. Either way the
campaign has corrected numbers with p-values, Holm's adjustment and a ranking.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from parts.bulk_judges import MIDDLE, fill
from parts.synthetic import POOL_DEPTH, Ints, Population

SCORES = "machine"
MACHINE_SKILL = 0.9
MEASURE = "DCG@10"
BY_SCORE, BY_AUDIT = "score", "audit"
ROUTES = (BY_SCORE, BY_AUDIT)


@dataclass(frozen=True)
class Routes:
    """How both routes are walked: gold labels expected of each, audits in which they come, and by which strategy."""

    gold: int = 200
    audits: int = 2
    strategy: str = "influence"


def machine_grades(population: Population, noise: str, seed: int) -> Ints:
    """Return [item] what the machine says of every document: the same in all campaigns."""
    from touchstone.demo.simulated import simulated_grades

    share = population.share if noise == "popularity" else np.full(population.share.size, MIDDLE)
    rng = np.random.default_rng([seed, 77])
    return simulated_grades(rng, population.grade, share, np.full(share.size, MACHINE_SKILL))


def write_scores(population: Population, grades: Ints, path: Path) -> None:
    """Write the machine's labels as a file of scores: the grade over the highest one."""
    pairs = zip(population.topic_ids, population.doc_ids, grades.tolist(), strict=True)
    path.write_text("".join(f"{topic} {document} {grade / 3:.6f}\n" for topic, document, grade in pairs))


def import_machine_scores(
    collection: Any, population: Population, noise: str, seed: int, folder: Path
) -> None:
    from judging.services.scores import import_scores

    path = folder / f"{SCORES}-{noise}.scores"
    write_scores(population, machine_grades(population, noise, seed), path)
    import_scores(collection=collection, source=path, name=path.name, list_name=f"{SCORES} {noise}")


@dataclass
class Bench:
    """One campaign with a judge of the drawn documents and, by audit, a gold judge beside the machine."""

    campaign: Any
    population: Population
    places: dict[tuple[int, int], int]
    machine: Ints

    def judge(self, purpose: str, assessor: Any, grades: Ints) -> None:
        """Fill all open slots of the purpose with what the assessor says."""
        slots = self.campaign.slots.filter(purpose=purpose, state="open")
        rows = slots.values_list("id", "topic_id", "item__document_id")
        fill((slot, assessor.pk, int(grades[self.places[topic, document]])) for slot, topic, document in rows)


def walk(
    bench: Bench, route: str, noise: str, pair: tuple[str, str], plan: Routes, rng: np.random.Generator
) -> None:
    """Draw, judge and audit a campaign by the route."""
    from judging.services.campaigns import open_campaign
    from sampling.questions import Design
    from sampling.services.drawing import draw

    about = {"question": "pair", "runs": tuple(pair), "measure": MEASURE, "depth": POOL_DEPTH}
    if route == BY_SCORE:
        about |= {"budget": plan.gold, "prior": "scores", "scores": f"{SCORES} {noise}"}
    else:
        about |= {"budget": int(np.count_nonzero(bench.population.share))}  # the whole pool
    draw(campaign=bench.campaign, design=Design(**about), seed=int(rng.integers(2**62)))
    open_campaign(campaign=bench.campaign, actor=None)
    if route == BY_SCORE:
        bench.judge("judge", _assessor(bench, "gold"), bench.population.grade)
        return
    bench.judge("judge", _assessor(bench, "bronze"), bench.machine)
    _audit(bench, _assessor(bench, "gold"), plan, int(rng.integers(2**62)))


def _assessor(bench: Bench, tier: str) -> Any:
    from judging.models import Assessor
    from judging.services.campaigns import add_assessor
    from touchstone.models import User

    user, _ = User.objects.get_or_create(username=f"route {tier}")
    kind = Assessor.Kind.SIMULATED if tier == "gold" else Assessor.Kind.MACHINE
    return add_assessor(campaign=bench.campaign, user=user, tier=tier, kind=kind)


def _audit(bench: Bench, gold: Any, plan: Routes, seed: int) -> None:
    from sampling.services.auditing import audit

    for _ in range(plan.audits):
        audit(
            campaign=bench.campaign,
            items_each_time=plan.gold / plan.audits,
            items_in_total=plan.gold,
            strategy=plan.strategy,
            seed=seed,
        )
        bench.judge("audit", gold, bench.population.grade)


# -- what came out ------------------------------------------------------------------------------------------------


def told_of(computation: Any, pair: tuple[str, str]) -> dict[str, bool | int]:
    """Return whether the pair has p and Holm's p, whether all runs have a rank; and the gold labels that it took."""
    from analytics.estimation.claims import THESE
    from analytics.methods import REPORTED
    from analytics.services.comparisons import Comparisons
    from analytics.services.families import asked_family
    from analytics.services.ranking import ranking_of

    rows = computation.estimates.filter(measure=MEASURE, method=REPORTED.key)
    one = rows.get(run__run_id=pair[0], run_b__run_id=pair[1])
    ranking = ranking_of(computation=computation, measure=MEASURE)
    comparisons = Comparisons(computation, MEASURE, asked_family(computation.campaign, "all"), THESE)
    n_runs = rows.filter(run_b=None).count()
    return {
        "has_p": one.p_value is not None,
        "has_holm": comparisons.of(one).test.p_adjusted is not None,
        "has_rank": len(ranking.runs) == n_runs,
        "gold": computation.n_items if computation.is_by_gold_judges else computation.n_audited,
    }


def compared(by_route: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return how wide the audit's interval is beside the score's, of the pair at hand, by measure."""
    measures = by_route[BY_SCORE].keys() & by_route[BY_AUDIT].keys()
    return {
        measure: round(
            by_route[BY_AUDIT][measure]["corrected"]["pair_at_hand"]["mean_half_width"]
            / by_route[BY_SCORE][measure]["corrected"]["pair_at_hand"]["mean_half_width"],
            3,
        )
        for measure in sorted(measures)
    }
