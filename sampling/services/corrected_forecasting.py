"""Half-widths of the corrected number at many budgets with one planned audit, in closed form and for these topics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sampling.arrays import FloatArray
from sampling.outlook import LabelErrors
from sampling.services.outlook import design_widths
from sampling.services.population import Population


@dataclass(frozen=True)
class CorrectedWidths:
    """What is expected of the corrected number with the planned audit; empty where none is.

    `widths` are those of the design at the budgets, `by_design` those at the budget by design. `floor` is the least
    that any number of items from the budget up to the whole pool reaches: a larger draw lessens the error of the
    drawing, but as many gold labels then stand for more documents.
    """

    widths: list[float | None] = field(default_factory=list)
    by_design: dict[str, float | None] = field(default_factory=dict)
    floor: float | None = None


def corrected_widths(
    population: Population,
    draws: Mapping[str, Callable[[float], FloatArray]],
    budgets: Sequence[int],
    budget: float,
    errors: LabelErrors,
) -> CorrectedWidths:
    """Return the widths; `draws` gives by design the probabilities of a budget: "default" is as asked for."""
    others = [name for name in draws if name != "default"]
    own = [draws["default"](n) for n in (*budgets, budget, population.n_items)]
    found = design_widths(population, (*own, *(draws[name](budget) for name in others)), errors)
    n = len(budgets)
    if not any(found[:n]):
        return CorrectedWidths()
    from_budget = [width for asked, width in zip(budgets, found, strict=False) if asked >= budget]
    reached = [width for width in (*from_budget, *found[n : n + 2]) if width is not None]
    by_design = dict(zip(("default", *others), (found[n], *found[n + 2 :]), strict=True))
    return CorrectedWidths(found[:n], by_design, min(reached, default=None))
