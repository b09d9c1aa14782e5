"""Every address of version 0.1.0 still leads somewhere: bookmarks, links in mails and scripts go on working."""

from pathlib import Path

import pytest
from django.urls import Resolver404, resolve

ADDRESSES = (Path(__file__).parent / "recorded" / "addresses-0.1.0.txt").read_text().split()


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_of_0_1_0_still_leads_somewhere(address: str) -> None:
    assert callable(resolve(address).func)


def test_the_addresses_of_0_1_0_are_all_recorded_and_one_that_never_was_is_refused() -> None:
    assert len(ADDRESSES) == 210
    with pytest.raises(Resolver404):
        resolve("/manage/never/")
