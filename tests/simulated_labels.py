"""Labels of simulated assessors whose errors are known."""

import numpy as np


def simulated(seed, n_items=60, n_assessors=7, n_grades=3, share=0.7, accuracy=(0.5, 0.9)):
    """Return item, assessor, grade of labels and the sizes; who labels what is random."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_grades, size=n_items, p=rng.dirichlet(np.full(n_grades, 5.0)))
    item, assessor = np.nonzero(rng.random((n_items, n_assessors)) < share)
    right = rng.uniform(*accuracy, size=n_assessors)[assessor]
    random_grade = rng.integers(0, n_grades, item.size)
    grade = np.where(rng.random(item.size) < right, truth[item], random_grade)
    sizes = {"n_items": n_items, "n_assessors": n_assessors, "n_grades": n_grades}
    return (item, assessor, grade), sizes, truth


def objective_of(labels, sizes, found, prior):
    joint = np.tile(np.log(found.prevalence), (sizes["n_items"], 1))
    item, assessor, grade = labels
    np.add.at(joint, item, np.log(found.confusion[assessor, :, grade]))
    log_likelihood = np.logaddexp.reduce(joint, axis=1).sum()
    return log_likelihood + prior * (np.log(found.confusion).sum() + np.log(found.prevalence).sum())
