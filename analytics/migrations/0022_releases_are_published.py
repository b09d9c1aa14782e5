"""Where a release will be found, and since when its page is public: the one thing of it that may change again."""

import django.core.validators
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q

KEEP = """
CREATE OR REPLACE FUNCTION analytics_keep_release() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  may_change text[] := ARRAY['withdrawn_at', 'withdrawn_reason'{public}];
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'release: nothing is deleted' USING ERRCODE = 'check_violation', CONSTRAINT = 'analytics_release_kept';
  END IF;
  IF NEW.pseudonym_key = '' THEN
    may_change := may_change || ARRAY['pseudonym_key'];
  END IF;
  IF (to_jsonb(NEW) - may_change) IS DISTINCT FROM (to_jsonb(OLD) - may_change) THEN
    RAISE EXCEPTION 'release: ready is ready' USING ERRCODE = 'check_violation', CONSTRAINT = 'analytics_release_kept';
  END IF;
  RETURN NEW;
END $$
"""
PUBLIC = models.CheckConstraint(
    name="analytics_release_public", condition=Q(public_since__isnull=True) | Q(state="ready")
)


class Migration(migrations.Migration):
    dependencies = [("analytics", "0021_who_judged_is_erased")]
    operations = [
        migrations.AddField(
            "release",
            "doi",
            models.CharField(
                blank=True,
                db_default="",
                max_length=200,
                validators=[
                    django.core.validators.RegexValidator(
                        r"\A10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-.()\[\]\\]+\Z", "A DOI, such as 10.5281/zenodo.1"
                    )
                ],
            ),
        ),
        migrations.AddField("release", "url", models.URLField(blank=True, db_default="", max_length=500)),
        migrations.AddField("release", "public_since", models.DateTimeField(blank=True, null=True)),
        AddConstraintNotValid("release", PUBLIC),
        migrations.RunSQL(KEEP.format(public=", 'public_since'"), KEEP.format(public="")),
    ]
