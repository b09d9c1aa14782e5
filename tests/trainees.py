"""How a trainee goes through the training round."""

import pytest
from django.db import IntegrityError, transaction

from judging.services import training


def choose(campaign, n=4, seed=1):
    return training.choose_training_items(campaign=campaign, n=n, seed=seed)


def off_by_one(grade):
    return (grade + 1) % 4


def go_through(assessor, n_right):
    """Answer a whole attempt, the first n_right items rightly."""
    again = training.training_of(assessor=assessor, again=True)
    for number, item in enumerate(again.items):
        grade = item.grade if number < n_right else off_by_one(item.grade)
        training.answer(assessor=assessor, position=item.position, attempt=again.attempt, grade=grade)
    assessor.refresh_from_db()
    return training.training_of(assessor=assessor)


def refused():
    return pytest.raises(IntegrityError), transaction.atomic()
