"""What a campaign's judgments have cost, and what they will have cost at the end, from counts that are kept."""

from dataclasses import dataclass

from analytics.services.activity import MACHINE, Activity
from judging.models import Assessor, Campaign

GOLD = Assessor.Tier.GOLD


@dataclass(frozen=True)
class Costs:
    """In the manager's unit; None: nobody has said what a judgment costs. `of_machines` is in that of their prices."""

    so_far: float | None
    expected: float | None
    of_machines: float
    overhead: float  # judgments stored for each that counts: checks, surplus, what could not be judged


def costs(
    campaign: Campaign,
    activity: Activity,
    *,
    counted: int,
    left: int,
    gold_left: float,
    of_machines: float = 0.0,
) -> Costs:
    """Return the costs; `counted` judgments fill their place, `left` are wanted still, and so many of the gold tier.

    The requests of machines have cost `of_machines` until now.

    What is to come is taken to be judged as it was so far: by people and machines in the same shares, with as many
    judgments beside those that count.
    """
    series = {name: pair[0] for name, pair in activity.get("series", {}).items()}
    n_gold, n_machine = series.get(GOLD, 0), series.get(MACHINE, 0)
    n_people = sum(series.values()) - n_gold - n_machine
    machines = of_machines
    n_stored = n_people + n_machine
    overhead = max(1.0, n_stored / counted) if counted else 1.0
    of_people = n_people / n_stored if n_stored else 1.0
    each, each_gold = campaign.cost_per_judgment, campaign.cost_per_gold
    if (each is None and (n_people or left)) or (each_gold is None and (n_gold or gold_left)):
        return Costs(None, None, machines, overhead)
    each, each_gold = each or 0.0, each_gold or 0.0
    so_far = n_people * each + n_gold * each_gold + machines
    to_come = left * overhead
    machine_each = machines / n_machine if n_machine else 0.0
    ahead = to_come * (of_people * each + (1 - of_people) * machine_each) + gold_left * each_gold
    return Costs(so_far, so_far + ahead, machines, overhead)
