"""What Carterette and Allan (2007) say of their collections, held against the tables of this one."""

from experiments.parts.rows import Report, Row, row

MOST_OF_WEIGHTS = 0.3  # section 6.1: the correlation of weights with the ranking is never better


def value(report: Report, part: str, name: str) -> float | None:
    """Return what was computed under this name; None where nothing was."""
    return next((line.computed for line in report[part] if line.name == name), None)


def bins_within(report: Report) -> int:
    """Return how many bins of Table 2 have a share of relevant documents that lies within the bin."""
    count = 0
    for line in report["table2"]:
        if line.name.startswith("p from ") and line.computed is not None:
            _, _, low, _, high = line.name.split()
            count += float(low) <= line.computed < float(high)
    return count


def claims(report: Report) -> list[Row]:
    """Return each statement as a number that must be at least, or at most, something; without the numbers, none."""
    none = value(report, "figure1", "tau of EMAP with MAP")
    reweighted = value(report, "figure3", "tau of EMAP with MAP, reweighted")
    of_weights = value(report, "text61", "tau of the weights with MAP")
    ratio, random_ratio, same_ratio = (
        value(report, "text52", f"{key}d rel over d non") for key in ("", "random: ", "deterministic: ")
    )
    d, rho = (value(report, "table4", name) for name in ("mean d", "correlation of d with MAP"))
    lines = [
        row("4.2.2: bins whose share of relevant documents lies within", 0, bins_within(report), most=0),
        _difference("4.3: tau, popular less uniform pseudo-judgments",
                    value(report, "table3", "pseudo-judgments, popular"),
                    value(report, "table3", "pseudo-judgments, uniform"), rises=True),
        *(
            _difference(f"4.4: tau, manual runs weigh {weight} less all alike",
                        value(report, "figure2", f"tau of EMAP with MAP, manual runs weigh {weight}"), none, rises=True)
            for weight in (8, 16)
        ),
        _bounded("5.2: d rel over d non, about 2", ratio, least=1.0),
        _difference("5.2: d, replaced at random less as it is",
                    value(report, "table5", "random: mean d"), d, rises=False),
        _difference("5.2: its correlation with MAP, at random",
                    value(report, "table5", "random: correlation of d with MAP"), rho, rises=True),
        _difference("5.2: d rel over d non, replaced at random less as it is", random_ratio, ratio, rises=True),
        _difference("5.2: d, replaced deterministically less as it is",
                    value(report, "table5", "deterministic: mean d"), d, rises=True),
        _difference("5.2: its correlation with MAP, deterministically",
                    value(report, "table5", "deterministic: correlation of d with MAP"), rho, rises=False),
        _bounded("5.2: d rel over d non, replaced deterministically", same_ratio, most=1.0),
        _difference("6.1: tau, reweighted less no judgments", reweighted, none, rises=True),
        _difference("6.1: tau, reweighted less manual runs weigh 8", reweighted,
                    value(report, "figure2", "tau of EMAP with MAP, manual runs weigh 8"), rises=True),
        _bounded("6.1: tau of the weights with MAP", of_weights, most=MOST_OF_WEIGHTS),
        _difference("6.1: tau of the weights less that of EMAP", of_weights, none, rises=False),
        *_subset_claims(report),
    ]  # fmt: skip
    return [line for line in lines if line is not None]


def _subset_claims(report: Report) -> list[Row | None]:
    """Return what section 7.2 says: subsets are lower than the whole set, and few judgments better than none."""
    higher, n_lines = 0, 0
    for line in report["figure4"]:
        size, _, method = line.name.partition(" runs: ")
        whole = value(report, "figure4", f"all runs: {method}")
        if size != "all" and line.computed is not None and whole is not None:
            n_lines += 1
            higher += line.computed > whole
    if not n_lines:
        return []
    return [
        row("7.2: means of subsets above the whole set", None, higher, most=n_lines / 4,
            note=f"of {n_lines}; \"nearly always lower\", here: at most a quarter"),
        _difference("7.2: tau of subsets, reweighted less no judgments",
                    value(report, "table6", "(a) reweighted"), value(report, "table6", "(a) no judgments"), rises=True),
    ]  # fmt: skip


def _bounded(
    name: str, number: float | None, *, least: float | None = None, most: float | None = None
) -> Row | None:
    return None if number is None else row(name, None, number, least=least, most=most)


def _difference(name: str, first: float | None, second: float | None, *, rises: bool) -> Row | None:
    """Return the difference, which must not fall, or not rise."""
    if first is None or second is None:
        return None
    return _bounded(name, first - second, least=0.0 if rises else None, most=None if rises else 0.0)
