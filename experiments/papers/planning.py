"""How many topics a significant difference of raw labels needs."""

from analytics.planning.planner import error_for_power


def topics_for_test(
    bronze_difference: float, difference_variance: float, *, power: float = 0.8, level: float = 0.05
) -> float:
    """Return the topics for a significant ja - jb; with one shared audit the test needs no gold at all.

    `difference_variance` is s_a^2 + s_b^2 for different topics (then as many per system) or s_d^2 for the same.

    >>> round(topics_for_test(.014, .24**2 + .2596**2, power=.5))
    2450
    """
    if not difference_variance > 0:
        raise ValueError(f"difference_variance must be above 0, got {difference_variance}")
    return difference_variance / error_for_power(bronze_difference, power=power, level=level) ** 2
