"""Images that documents show, as rows that are only added to."""

from typing import Any

import django.db.models.deletion
import django.db.models.functions.text
import django.db.models.lookups
from django.db import migrations, models

TABLE = "judging_documentimage"
# An import may be taken back: by the owner's function, which has just written the event that says so.
KEEP = f"""
CREATE FUNCTION {TABLE}_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND EXISTS (
      SELECT FROM touchstone_event e
       WHERE e.id = nullif(current_setting('touchstone.removal', TRUE), '')::bigint
         AND e.verb = 'removed an import' AND e.at = transaction_timestamp()
         AND e.subject = 'collection:' || OLD.collection_id AND e.detail ->> 'table' = '{TABLE}'
         AND OLD.id BETWEEN (e.detail -> 'rows' ->> 0)::bigint AND (e.detail -> 'rows' ->> 1)::bigint) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'check_violation';
END $$;
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION {TABLE}_keep() SET search_path = %I, pg_temp', current_schema());
END $$;
"""
FORWARD: list[Any] = [
    KEEP,
    # Pictures are compressed already.
    f"ALTER TABLE {TABLE} ALTER COLUMN content SET STORAGE EXTERNAL",
    f"CREATE TRIGGER {TABLE}_append_only BEFORE UPDATE OR DELETE ON {TABLE}"
    f" FOR EACH ROW EXECUTE FUNCTION {TABLE}_keep()",
    f"CREATE TRIGGER {TABLE}_no_truncate BEFORE TRUNCATE ON {TABLE}"
    " FOR EACH STATEMENT EXECUTE FUNCTION touchstone_refuse_change()",
    *(f"ALTER TABLE {TABLE} ENABLE ALWAYS TRIGGER {TABLE}_{name}" for name in ("append_only", "no_truncate")),
]
BACK: list[Any] = [f"DROP TRIGGER {TABLE}_{name} ON {TABLE}" for name in ("append_only", "no_truncate")]
BACK += [f"DROP FUNCTION {TABLE}_keep()"]


class Migration(migrations.Migration):
    dependencies = [("judging", "0035_stuck_items")]

    operations = [
        migrations.CreateModel(
            name="DocumentImage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(max_length=500)),
                ("sha256", models.CharField(max_length=64)),
                ("media_type", models.CharField(max_length=20)),
                ("content", models.BinaryField()),
                (
                    "collection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="images",
                        to="judging.collection",
                    ),
                ),
                (
                    "imported_by",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="judging.import",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("collection", "path"), name="judging_documentimage_unique"),
                    models.CheckConstraint(
                        condition=models.Q(("path__regex", "^\\S+$")), name="judging_documentimage_path"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("media_type__in", ["image/png", "image/jpeg", "image/webp"])),
                        name="judging_documentimage_media_type",
                    ),
                    models.CheckConstraint(
                        condition=django.db.models.lookups.LessThanOrEqual(
                            django.db.models.functions.text.Length("content"), 524288
                        ),
                        name="judging_documentimage_short",
                    ),
                ],
            },
        ),
        migrations.RunSQL(FORWARD, BACK),
    ]
