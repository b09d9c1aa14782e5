"""What a module makes once, each of its tests finds as it was made; a test that commits is refused it."""

from copy import deepcopy
from functools import cache
from types import SimpleNamespace

import pytest
from django.urls.resolvers import _get_cached_resolver  # type: ignore[attr-defined]  # Django's stubs leave it out
from worlds_of_modules import group_of, wrongly_shared

from touchstone.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made_once(module_world):
    return User.objects.create(username="mia", role="assessor")


@pytest.fixture
def mia(made_once, db):
    return deepcopy(made_once)


@pytest.mark.parametrize("turn", [1, 2])
def test_neither_a_row_nor_an_attribute_outlives_its_test(mia, turn):
    assert mia.role == User.objects.get().role == "assessor"
    mia.role = "researcher"
    mia.save()
    User.objects.create(username=f"ben{turn}")
    assert User.objects.count() == 2


def item(marks, *fixtures):
    found = {mark.name: mark for mark in marks}
    return SimpleNamespace(nodeid="here", fixturenames=fixtures, get_closest_marker=found.get)


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        (item([pytest.mark.django_db.mark], "campaign", "module_world"), []),
        (item([pytest.mark.django_db(transaction=True).mark], "campaign"), []),
        (item([pytest.mark.django_db(transaction=True).mark], "campaign", "module_world"), ["here"]),
        (item([pytest.mark.django_db(True).mark], "module_world"), ["here"]),
        (item([], "transactional_db", "module_world"), ["here"]),
    ],
)
def test_a_test_that_commits_is_refused_the_world_of_its_module(asked, wrong):
    assert list(wrongly_shared([asked])) == wrong


@cache
def kept():
    return 1


def of_module(*scopes, group=None, **names):
    fixtures = {str(number): [SimpleNamespace(scope=scope)] for number, scope in enumerate(scopes)}
    return SimpleNamespace(
        path="a",
        module=SimpleNamespace(**names),
        _fixtureinfo=SimpleNamespace(name2fixturedefs=fixtures),
        get_closest_marker={"xdist_group": group}.get,
    )


@pytest.mark.parametrize(
    ("one", "group"),
    [
        (of_module("function", "session"), None),
        (of_module("function", "module"), "a"),
        (of_module("module", group=pytest.mark.xdist_group("browser"), kept=kept), None),
        (of_module("function", kept=kept), __file__),
        (of_module("function", product=_get_cached_resolver), None),
        (of_module("module", kept=kept), __file__),
    ],
    ids=["nothing", "a fixture", "a group of its own", "kept", "kept by a library", "both"],
)
def test_tests_that_share_what_is_made_once_run_in_one_process(one, group):
    assert group_of(one) == group
