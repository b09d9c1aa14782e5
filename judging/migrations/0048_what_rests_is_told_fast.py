"""What rests on an import is told in a moment in a campaign of a million judgments too.

Kinds of which the import brought no rows are not asked for, and no place for a judgment is looked at whose topic has
items: these rest on the import already.
"""

from dataclasses import replace
from importlib import import_module

from django.db import migrations

taken_back = import_module("judging.migrations.0037_imports_are_taken_back")

WITHOUT_ITEMS = (
    "SELECT r.id FROM {rows} WHERE {mine} AND NOT EXISTS (SELECT FROM judging_item i WHERE i.topic_id = r.id)"
)
PLACES = (
    f"SELECT x.campaign_id, count(*) FROM judging_slot x WHERE EXISTS ({WITHOUT_ITEMS})"
    f" AND x.topic_id IN ({WITHOUT_ITEMS}) GROUP BY 1"
)
KINDS = tuple(
    replace(kind, refers=kind.refers | {"places for judgments": PLACES})
    if kind.table == "judging_topic"
    else kind
    for kind in taken_back.KINDS
)
# A function that is replaced has forgotten where it looks.
PATH = """
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION touchstone_rests_on(uuid) SET search_path = %I, pg_temp', current_schema());
END $$;
"""


def rests() -> str:
    """Return the SQL of the function that says what rests on an import."""
    queries = [
        f"SELECT '{words}', q.* FROM ({sql}) q WHERE span ? '{kind.table}'"
        for kind in KINDS
        for words, sql in kind.queries().items()
    ]
    queries += [f"SELECT '{words}', q.* FROM ({sql}) q" for words, sql in taken_back.OF_JUDGMENTS.items()]
    told: str = taken_back.RESTS % {"span": taken_back.SPAN, "queries": "\n    UNION ALL ".join(queries)}
    return told + PATH


class Migration(migrations.Migration):
    dependencies = [("judging", "0047_rare_judgments")]
    operations = [migrations.RunSQL(rests(), taken_back.functions()[0] + PATH)]
