"""Documents and topics are found by words of their titles."""

import django.contrib.postgres.indexes
import django.contrib.postgres.search
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations
from django.db.models.functions import Left


def words(model: str) -> AddIndexConcurrently:
    vector = django.contrib.postgres.search.SearchVector(Left("title", 10_000), config="simple")
    index = django.contrib.postgres.indexes.GinIndex(vector, name=f"judging_{model}_words")
    return AddIndexConcurrently(model, index)


class Migration(migrations.Migration):
    atomic = False  # an index is made beside what is imported meanwhile
    dependencies = [("judging", "0042_tags_of_runs_set_aside_are_free")]
    operations = [words("topic"), words("document")]
