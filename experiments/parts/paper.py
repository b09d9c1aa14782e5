"""What the paper prints, and what the rebuilt data must give (docs/methods/derivations/schnabel.md, sections 1 and 2).

Paper: Schnabel, Swaminathan, Frazier, Joachims: Unbiased Comparative Evaluation of Ranking Functions (2016), Tables
2 to 7. Rows in the paper's order of systems; numbers as printed. Its figures are images and give no numbers.
"""

SYSTEMS = ("OPT", "REV-75", "REV-150", "SHIFT-5", "SHIFT-7")  # the paper's names; "SHIFT-5" shifts by 3

# ---- the paper's SYNTH rows -----------------------------------------------------------------------------------
TRUE_U = (284.40, 277.63, 271.32, 274.94, 269.87)
SHALLOW_POOL = (16.98, 10.00, 8.51, 4.72, 0.00)
DEEP_POOL = ((284.48, 1.69), (277.79, 1.75), (271.21, 1.59), (275.03, 1.69), (269.90, 1.75))
SAMPLING = ((284.54, 1.22), (277.58, 1.07), (271.18, 0.97), (274.73, 1.10), (269.98, 1.12))
SD_BY_DESIGN = {  # Table 3
    "Q*": (1.22, 1.07, 0.97, 1.10, 1.12),
    "Q^P": (1.98, 1.45, 1.33, 1.67, 1.45),
    "Q^unif": (3.05, 2.64, 2.20, 2.63, 2.45),
}
HALF_WIDTH = (2.21, 2.10, 2.05, 2.18, 2.18)  # Table 4
COVERAGE = (0.92, 0.96, 0.95, 0.93, 0.94)
# Tables 5 to 7: (naive u~, naive u*, Q* u~, Q* u*)
VARIANCES = {
    "table5": (2.15, 1.13, 0.24, 0.21),
    "table6": (1.31, 0.70, 0.18, 0.15),
    "table7": (0.86, 0.46, 0.11, 0.09),
}

# ---- the paper's TREC rows: Tables 2 to 4 name three systems, the twenty of Tables 5 to 7 are not named --------
TREC_SYSTEMS = ("mds08a3", "nttd8ale", "weaver2")
TREC_REASON = "not checkable: which twenty of the TREC-8 systems were drawn is not said"
TREC_ABSENT = "not computed: the runs of TREC-8 are not public; --trec8 FOLDER reads them"
TREC = {
    "table2": {
        "mds08a3: true U": 6.96,
        "nttd8ale: true U": 9.01,
        "weaver2: true U": 7.48,
        "mds08a3: ShallowPool": 1.93,
        "nttd8ale: ShallowPool": 2.41,
        "weaver2: ShallowPool": 1.94,
        "mds08a3: DeepPool mean": 7.32,
        "nttd8ale: DeepPool mean": 8.79,
        "weaver2: DeepPool mean": 8.40,
        "mds08a3: DeepPool sd": 5.05,
        "nttd8ale: DeepPool sd": 5.30,
        "weaver2: DeepPool sd": 6.59,
        "mds08a3: sampling mean": 6.86,
        "nttd8ale: sampling mean": 8.97,
        "weaver2: sampling mean": 7.53,
        "mds08a3: sampling sd": 0.76,
        "nttd8ale: sampling sd": 0.87,
        "weaver2: sampling sd": 0.83,
    },
    "table3": {
        "mds08a3: sd Q*": 0.76,
        "nttd8ale: sd Q*": 0.87,
        "weaver2: sd Q*": 0.83,
        "mds08a3: sd Q^P": 0.84,
        "nttd8ale: sd Q^P": 0.98,
        "weaver2: sd Q^P": 0.92,
        "mds08a3: sd Q^unif": 0.97,
        "nttd8ale: sd Q^unif": 1.18,
        "weaver2: sd Q^unif": 1.05,
    },
    "table4": {
        "mds08a3: half-width": 1.50,
        "nttd8ale: half-width": 1.65,
        "weaver2: half-width": 1.58,
        "mds08a3: coverage": 0.95,
        "nttd8ale: coverage": 0.94,
        "weaver2: coverage": 0.95,
    },
    "table5": {"naive, u~": 6.60, "naive, u*": 4.65, "Q*, u~": 1.45, "Q*, u*": 0.77},
    "table6": {"naive, u~": 15.08, "naive, u*": 1.77, "Q*, u~": 6.82, "Q*, u*": 1.28},
    "table7": {"naive, u~": 38.64, "naive, u*": 1.79, "Q*, u~": 12.40, "Q*, u*": 1.12},
}

# ---- docs/methods/derivations/schnabel.md, section 2: what this program must find ---------------------------
EXPECTED_U = (284.5893, 277.8191, 271.4760, 275.1276, 270.0470)
EXPECTED_SHALLOW_POOL = (16.990, 10.015, 8.508, 4.718, 0.0)
EXPECTED_SD = {
    "Q*": (1.090, 1.037, 1.011, 1.080, 1.079),
    "Q^P": (1.882, 1.796, 1.732, 1.829, 1.804),
    "Q^unif": (3.131, 2.606, 2.352, 2.573, 2.405),
}
EXPECTED_HALF_WIDTH = (2.2095, 2.1007, 2.0442, 2.1826, 2.1774)
EXPECTED_VARIANCES = {
    "table5": (2.1828, 1.1381, 0.2464, 0.2100),
    "table6": (1.3175, 0.7029, 0.1842, 0.1522),
    "table7": (0.8661, 0.4668, 0.1107, 0.0948),
}
EXPECTED_RATIOS = {"table5": (8.86, 5.42), "table6": (7.15, 4.62), "table7": (7.82, 4.92)}
EXPECTED_PAIRS = {  # Table 5 before averaging, in the order of VARIANCES
    "OPT/REV-75": (3.1109, 1.4677, 0.2410, 0.2278),
    "REV-75/SHIFT-5": (1.7688, 0.9187, 0.1761, 0.1462),
    "SHIFT-5/REV-150": (2.1797, 1.1873, 0.3051, 0.2564),
    "REV-150/SHIFT-7": (1.6719, 0.9787, 0.2635, 0.2096),
}
# of the track's own runs and qrels, by system (experiments/parts/trec8.py)
EXPECTED_TREC_U = dict(zip(TREC_SYSTEMS, (6.960, 9.007, 7.484), strict=True))
EXPECTED_TREC_SD = dict(zip(TREC_SYSTEMS, (0.789, 0.866, 0.833), strict=True))
EXPECTED_TREC_HALF_WIDTH = dict(zip(TREC_SYSTEMS, (1.547, 1.698, 1.634), strict=True))
BUDGETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)  # judgments per user, n/|X|
EXPECTED_CURVES = {  # per figure: naive, Q*
    "figure1": ((0.593, 0.697, 0.762, 0.855, 0.916, 0.960), (0.753, 0.897, 0.943, 0.979, 0.994, 0.999)),
    "figure2": ((0.814, 0.839, 0.887, 0.926, 0.955, 0.986), (0.843, 0.938, 0.980, 0.999, 1.0, 1.0)),
    "figure3": ((0.502, 0.633, 0.759, 0.851, 0.913, 0.967), (0.730, 0.896, 0.937, 0.978, 0.993, 1.0)),
}
