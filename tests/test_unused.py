"""No function or class of the product lives for its tests alone."""

import pytest
from product_names import Name, Product, entry_points, product_sources

# Everything here is used by something else than the product's Python files, or is kept for a reason.
EXCEPTIONS = {
    "analytics.estimation.comparison.welch": "kept for runs that were measured on different topics",
    "analytics.estimation.ratios.ratio_estimates": "ratios without their values by topic, which most tests ask for",
    "analytics.estimation.group_sequential.crossing_probabilities": "what given bounds spend, for benchmarks",
    "analytics.estimation.sequences.always_valid_p_value": "kept for tests that may be looked at whenever one likes",
    "analytics.screening.known.auc": "the AUC of one topic, beside which tests put those of a whole log",
    "analytics.screening.sequence.serial_tails": "the serial test of labels without a log",
    "sampling.measures.pairwise.pair_utility": "kept for measures of pairs of documents",
    "sampling.measures.pairwise.pair_weights": "kept for measures of pairs of documents",
    "sampling.measures.registry.parse_pairs": "kept for measures of pairs of documents",
    "sampling.measures.pairwise.ranked_pairs": "kept for measures of pairs of documents",
    "sampling.acceptance.apparent_rate": "kept for checkers who err",
    "sampling.acceptance.sequential_plan": "kept for checks that go on one at a time",
    "sampling.minimal_collection.total_difference": "the sign of a chosen pair; experiments/minimal_collections.py",
    "sampling.prediction.cross_fitted": "without components: benchmarks compare with it",
    "touchstone.api.schema.KeyScheme": "drf-spectacular finds it by its base class",
    "touchstone.mail_settings.number": "touchstone.settings takes all of mail_settings over by its star",
    "touchstone.mail_settings.site_url": "touchstone.settings takes all of mail_settings over by its star",
    "touchstone.sign_on_settings.issuer": "touchstone.settings takes all of sign_on_settings over by its star",
    "touchstone.jobs.run": "one certain job, without a worker: tests",
}


def name_of(dotted: str) -> Name:
    module, _, name = dotted.rpartition(".")
    return module, name


def unused_names(product: Product, promised: list[str], exceptions: list[str]) -> list[str]:
    """Return the functions and classes that neither the product, a promise nor an exception reaches."""
    roots = product.roots | {definition for text in promised if (definition := product.resolve_path(text))}
    known = product.functions_and_classes()
    roots |= {name for name in map(name_of, exceptions) if name in known}
    return sorted(".".join(name) for name in known - product.reach(roots))


def needless_exceptions(product: Product, promised: list[str], exceptions: list[str]) -> list[str]:
    """Return the exceptions without which the list of unused names would be the same."""
    rest = {one: [other for other in exceptions if other != one] for one in exceptions}
    return [one for one in exceptions if one not in unused_names(product, promised, rest[one])]


PLANTED = "def outer():\n    return inner()\n\ndef inner():\n    ...\n"


@pytest.fixture(scope="module")
def product() -> Product:
    return Product(product_sources())


def test_every_function_and_class_of_the_product_is_used_by_the_product(product: Product) -> None:
    assert unused_names(product, entry_points(), list(EXCEPTIONS)) == []


def test_no_exception_is_needless(product: Product) -> None:
    assert needless_exceptions(product, entry_points(), list(EXCEPTIONS)) == []


def test_a_planted_function_that_only_another_unused_one_calls_is_named() -> None:
    product = Product({**product_sources(), "sampling/planted.py": PLANTED})
    assert unused_names(product, entry_points(), list(EXCEPTIONS)) == [
        "sampling.planted.inner",
        "sampling.planted.outer",
    ]


USER = "judging/urls.py"


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        # used: by a name, an attribute of a module, a re-export, a string, a decorator, an annotation in quotes
        ({"judging/a.py": "def f(): ...", USER: "from judging.a import f\nx = f"}, []),
        ({"judging/a.py": "def f(): ...", USER: "from judging import a\nx = a.f"}, []),
        ({"judging/a.py": "def f(): ...", "judging/b.py": "from .a import f", USER: "import judging.b as b\nb.f"}, []),
        ({"judging/a.py": "def f(): ...", USER: "x = 'judging.a.f'"}, []),
        ({"judging/a.py": "@jobs.handler('x')\ndef f(): ..."}, []),
        ({"judging/a.py": "class A: ...", USER: "from judging.a import A\ndef f() -> 'A': ..."}, []),
        ({"judging/a.py": "def f(): ...\nTABLE = (f,)", USER: "from judging.a import TABLE\nx = TABLE"}, []),
        ({"judging/r/a.py": "from b import f\nf()", "judging/r/b.py": "def f(): ..."}, []),
        # not used: imported only, hidden by a local name, in __all__, calling itself, in a table that nobody reads
        ({"judging/a.py": "def f(): ...", USER: "from judging.a import f"}, ["judging.a.f"]),
        ({"judging/a.py": "def f(): ...", USER: "from judging.a import f\ndef g(f): return f"}, ["judging.a.f"]),
        ({"judging/a.py": "def f(): ...\n__all__ = ['f']"}, ["judging.a.f"]),
        ({"judging/a.py": "def f(): return f()"}, ["judging.a.f"]),
        ({"judging/a.py": "def f(): ...\nTABLE = (f,)"}, ["judging.a.f"]),
        ({"judging/a.py": "def _f(): ..."}, ["judging.a._f"]),
    ],
)  # fmt: skip
def test_what_counts_as_use(sources: dict[str, str], names: list[str]) -> None:
    assert unused_names(Product(sources), [], []) == names


def test_an_exception_is_needless_once_it_is_used_or_gone() -> None:
    product = Product({"judging/a.py": "def f(): ...\ndef g(): ...", USER: "from judging.a import f\nx = f"})
    assert needless_exceptions(product, [], ["judging.a.f", "judging.a.g", "judging.a.h"]) == [
        "judging.a.f",
        "judging.a.h",
    ]
    assert needless_exceptions(product, ["judging.a:g"], ["judging.a.g"]) == ["judging.a.g"]
