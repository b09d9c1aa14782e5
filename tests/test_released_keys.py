"""Keys stand in databases, releases and scripts: one that was ever released stays in its table."""

from collections.abc import Callable

import pytest

from sampling.measures.registry import FAMILIES
from sampling.strategies import strategy_keys


def measure_keys() -> list[str]:
    return [name for family in FAMILIES for name in (family.key, *family.aliases)]


# By table, what reads its keys, and the keys ever released. Add to these lists; never take away.
RELEASED: dict[str, tuple[Callable[[], list[str]], str]] = {
    "measures": (measure_keys, "P Gain DCG RBP nDCG AP NDCG MAP Swaps wSwaps"),
    "strategies": (strategy_keys, "influence risk neyman rare simple topic effort full"),
}


def lost_keys(released: str, keys: list[str]) -> list[str]:
    return [key for key in released.split() if key not in keys]


@pytest.mark.parametrize("table", RELEASED)
def test_no_key_that_was_released_has_gone_and_none_stands_twice(table: str) -> None:
    keys_of, released = RELEASED[table]
    keys = keys_of()
    assert lost_keys(released, keys) == []
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("table", RELEASED)
def test_a_key_that_goes_is_seen(table: str) -> None:
    keys_of, released = RELEASED[table]
    first, *rest = keys_of()
    assert lost_keys(released, rest) == [first]
