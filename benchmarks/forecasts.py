"""Measure how well the corrected number's interval is forecast: at the first draw, a top-up, the next audit, for reuse.

    python benchmarks/forecasts.py --campaigns 40 --seed 1 [--clef <folder of clef_tar2017>] [--json] [--rows FILE]

A campaign: a pool with complete judgments (topics alike or unlike, TREC-like pools of 20 unlike runs or near-copies,
CLEF TAR 2017 where its folder is given), a pair of its runs, the default draw for it (1,200 items), 2 or 4 grades, 1 to
3 labels an item with errors that depend on the grade alone or on popularity too, and an audit of 150 by influence. The
product's functions forecast from ranks and from how labels err; then it is drawn, judged, audited and estimated once.

- `first`: the draw of the pair, for the pair and for its first run; with the errors as they are, and with the errors
  that are assumed where nothing is measured (.80, .85), apart. The control: the drawing alone, judgments taken as free
  of error, whose median is to be below .3.
- `top-up`: of 600 items for that pair the draw grows to 1,200 for another pair; forecast for the other pair.
- `reuse`: the draw is known; forecast for a run that it was not made for.
- `advice`: of 600 items and an audit of 75 the planner says what 75 units of money buy best; that is drawn and audited.
- `next audit`: after an audit of 75, the one that makes it 150; forecast for the pair.

Printed: the median of forecast over obtained half-width, and the share within .7 to 1.4. Goals: medians of .9 to 1.1
with the errors as they are, and 90 % within. The same for the closed form, beside the first draw.

With --repeat N each campaign is played N times instead, and what was obtained is held against its own median: what no
forecast can beat.
"""

import argparse
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts.coverage_collection import Floats
from parts.coverage_grid import chosen
from parts.forecast_campaigns import (
    AUDITED,
    RELEVANT,
    SEED,
    Drawing,
    Pool,
    judge,
    make_pool,
    sizes_for,
    true_errors,
)
from parts.forecast_repeats import repeats, repeats_table

from analytics.estimation.estimate import Refusal
from analytics.planning.campaign_plays import played_widths
from sampling.campaign_plan import CampaignPlan
from sampling.designs import inclusion_probabilities
from sampling.outlook import LabelErrors, assumed_errors, label_classes, outlook
from sampling.questions import nested_probabilities

DRAWN = 1200
POOLS = ("alike", "unlike", "diverse", "near-duplicates", "CLEF")
WITHIN, MEDIAN = (0.7, 1.4), (0.9, 1.1)
Z95 = 1.959964


def closed_form(plan: CampaignPlan) -> tuple[float, float]:
    """Return the half-width in closed form, and that of the drawing alone."""
    judging = plan.judging
    audit = judging.audit_probabilities(plan.strategy, AUDITED, np.random.default_rng(SEED))
    square = np.square(plan.runs.dense()[0])
    found = outlook(
        square,
        judging.draw_probability,
        judging.chances,
        classes=label_classes(judging.errors, judging.n_labels),
        gains=plan.gains,
        audit_probability=audit,
    )
    gain, p, pi = plan.gains[RELEVANT:].mean(), plan.prior, judging.draw_probability
    alone = Z95 * np.sqrt(((1 - pi) / pi * square * gain**2 * p * (1 - p)).sum())
    return float(found.half_width or np.nan), float(alone)


class Case:
    """One campaign: a pool, a kind of errors, labels and grades, and of each forecast what came of it."""

    def __init__(self, number: int, seed: int, clef: Path | None) -> None:
        pools = POOLS if clef else POOLS[:-1]
        kinds = list(product(("class_conditional", "popularity"), (1, 2, 3), (2, 4)))
        name = pools[number % len(pools)]
        self.noise, self.votes, n_grades = kinds[number // len(pools) % len(kinds)]
        self.pool: Pool = make_pool(name, seed + number, n_grades, clef)
        self.rng, self.seed = np.random.default_rng([seed, number]), seed
        self.runs = self._unlike_runs()
        self.measured = true_errors(self.pool, self.noise, seed)
        self.about = {"pool": name, "errors": self.noise, "labels": self.votes, "grades": n_grades}
        self.rows: list[dict[str, Any]] = []

    def _unlike_runs(self) -> list[int]:
        """Return four runs, the first two and the last two unlike; some of CLEF's rank alike."""
        w = self.pool.weights
        while True:
            a, b, c, d = self.rng.choice(w.shape[0], 4, replace=False).tolist()
            if (w[a] != w[b]).any() and (w[c] != w[d]).any():
                return [a, b, c, d]

    def weights(self, run: int, against: int | None = None) -> Floats:
        """Return w of one of the case's runs, or of a pair of them."""
        w = self.pool.weights
        return w[self.runs[run]] - (0 if against is None else w[self.runs[against]])

    def add(self, of: str, what: str, obtained: float, **forecasts: float) -> None:
        """Add what was forecast over what came."""
        ratios = {how: forecast / obtained for how, forecast in forecasts.items()}
        self.rows.append({**self.about, "of": of, "what": what, "obtained": obtained, **ratios})

    def drawing(self, chance: Floats, pair: tuple[int, int]) -> Drawing:
        """Draw with these chances, for a pair of the case's runs."""
        runs = (self.runs[pair[0]], self.runs[pair[1]])
        return Drawing(self.pool, runs, chance, np.flatnonzero(chosen(chance, self.rng)))

    def sizes(self, first: int, second: int) -> Floats:
        return sizes_for(self.pool, (self.runs[first], self.runs[second]))

    def forecast(
        self, drawing: Drawing, w: Floats, *, errors: LabelErrors | None = None, is_known: bool = False
    ) -> float:
        """Return the median half-width of the plays; no number where they have none."""
        plan = drawing.plan(errors or self.measured, self.votes, w, is_known=is_known)
        found = played_widths(plan, SEED)
        return float("nan") if isinstance(found, Refusal) else found.median

    def first_draw(self) -> None:
        """Draw for the pair; forecast it, its first run, another run once the draw is known, and the second audit."""
        drawing = self.drawing(inclusion_probabilities(self.sizes(0, 1), DRAWN), (0, 1))
        done = judge(drawing, self.noise, self.votes, self.rng)
        audit, half = done.audit(AUDITED), done.audit(AUDITED / 2)
        assumed = assumed_errors(self.pool.n_grades, RELEVANT)
        for what, w in (("pair", self.weights(0, 1)), ("run", self.weights(0))):
            closed, alone = closed_form(drawing.plan(self.measured, self.votes, w, is_known=False))
            self.add(
                "first",
                what,
                done.width(audit, w, self.seed),
                measured=self.forecast(drawing, w),
                closed_form=closed,
                assumed=self.forecast(drawing, w, errors=assumed),
                drawing_alone=alone,
            )
        other, pair = self.weights(2), self.weights(0, 1)
        known = self.forecast(drawing, other, is_known=True)
        self.add("reuse", "run", done.width(audit, other, self.seed), measured=known)
        after = done.next_audit(half, audit, pair, done.width(half, pair, self.seed))
        self.add("next audit", "pair", done.width(audit, pair, self.seed), measured=after)

    def top_up(self) -> None:
        """Draw half for the pair, then as much again for another pair; forecast that one."""
        before = inclusion_probabilities(self.sizes(0, 1), DRAWN / 2)
        more = self.drawing(nested_probabilities(self.sizes(2, 3), before, DRAWN), (2, 3))
        done, w = judge(more, self.noise, self.votes, self.rng), self.weights(2, 3)
        came = done.width(done.audit(AUDITED), w, self.seed)
        self.add("top-up", "pair", came, measured=self.forecast(more, w))

    def advised(self) -> None:
        """Carry out what the planner advises after 600 items and 75 gold labels, for the price of 75 more."""
        self.rng = self.rng.spawn(1)[0]  # whatever was played before
        chance, w = inclusion_probabilities(self.sizes(0, 1), DRAWN / 2), self.weights(0, 1)
        done = judge(self.drawing(chance, (0, 1)), self.noise, self.votes, self.rng)
        half, bought = done.audit(AUDITED / 2), {"votes": self.votes, "budget": AUDITED / 2}
        more, gold, expected = done.advice(half, w, self.seed, **bought)
        after = nested_probabilities(self.sizes(0, 1), chance, DRAWN / 2 * more)
        then = judge(self.drawing(after, (0, 1)), self.noise, self.votes, self.rng)
        came = then.width(then.audit(AUDITED / 2 * gold), w, self.seed)
        self.add("advice", "pair", came, measured=expected)


def one_campaign(number: int, seed: int, clef: Path | None) -> list[dict[str, Any]]:
    """Return forecast over obtained half-width of a campaign."""
    case = Case(number, seed, clef)
    case.first_draw()
    case.top_up()
    case.advised()
    return case.rows


def summary(rows: list[dict[str, Any]], by: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return medians and shares within the limits, by these columns."""
    found = []
    for key in sorted({tuple(row[name] for name in by) for row in rows}, key=str):
        mine = [row for row in rows if tuple(row[name] for name in by) == key]
        cell: dict[str, Any] = {**dict(zip(by, key, strict=True)), "campaigns": len(mine)}
        for how in ("measured", "closed_form", "assumed", "drawing_alone"):
            ratio = np.array([row[how] for row in mine if how in row])
            known = ratio[np.isfinite(ratio)]
            if not known.size:
                continue
            inside = float(((known >= WITHIN[0]) & (known <= WITHIN[1])).mean())
            cell[how] = {
                "median": round(float(np.median(known)), 3),
                "within": round(inside, 3),
                "n": known.size,
            }
            if how == "measured":
                cell["holds"] = MEDIAN[0] <= cell[how]["median"] <= MEDIAN[1] and inside >= 0.9
        found.append(cell)
    return found


def main() -> None:
    """Simulate, print tables or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--campaigns", type=int, default=40, help="over all pools")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="number of the first campaign, to go on")
    parser.add_argument("--clef", type=Path, help="folder of clef_tar2017: adds this pool")
    parser.add_argument("--repeat", type=int, default=0, help="times that each campaign is played")
    parser.add_argument("--rows", type=Path, help="a file that gets a line of JSON as each campaign is done")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for number in range(options.start, options.start + options.campaigns):
        if options.repeat:
            case = Case(number, options.seed, options.clef)
            made = repeats(case, inclusion_probabilities(case.sizes(0, 1), DRAWN), options.repeat)
        else:
            made = one_campaign(number, options.seed, options.clef)
        rows += made
        if options.rows:
            with options.rows.open("a") as lines:
                lines.writelines(f"{json.dumps(row)}\n" for row in made)
    if options.repeat:
        print(json.dumps(rows, indent=2) if options.json else "\n".join(repeats_table(rows)))
        return
    tables = {"all": summary(rows, ("of", "what")), "errors": summary(rows, ("of", "what", "errors"))}
    if options.json:
        print(json.dumps({**tables, "rows": rows}, indent=2))
        return
    for cell in (*tables["all"], *tables["errors"]):
        parts = [
            f"{how} {cell[how]['median']:.2f} ({cell[how]['within']:.0%} of {cell[how]['n']} within)"
            for how in ("measured", "closed_form", "assumed", "drawing_alone")
            if how in cell
        ]
        name = f"{cell['of']:10} {cell['what']:5} {cell.get('errors', 'all'):18}"
        print(f"{name} {'holds ' if cell.get('holds') else 'misses'}  " + "   ".join(parts))


if __name__ == "__main__":
    main()
