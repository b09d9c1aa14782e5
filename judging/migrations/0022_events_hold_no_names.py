"""Events hold ids of people instead of names, also those that processes of an older version still write.

What a file calls its assessors moves to a table from which it can be erased. The next migration converts old events.
"""

import django.db.models.deletion
from django.db import migrations, models

# Of a detail with names, the same detail with ids of users and invitations; a name that nobody bears becomes null.
FUNCTIONS = """
CREATE FUNCTION judging_detail_without_names(about text, moment timestamptz, detail jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  found jsonb := detail;
  place uuid := CASE WHEN about LIKE 'campaign:%' THEN split_part(about, ':', 2)::uuid END;
BEGIN
  IF jsonb_typeof(detail -> 'assessor') = 'string' THEN
    found := found || jsonb_build_object('assessor',
      (SELECT u.id FROM touchstone_user u WHERE u.username = detail ->> 'assessor'));
  END IF;
  IF jsonb_typeof(detail -> 'members') = 'array' AND jsonb_typeof(detail -> 'members' -> 0) = 'string' THEN
    found := found || jsonb_build_object('members',
      (SELECT coalesce(jsonb_agg(u.id ORDER BY u.id), '[]') FROM touchstone_user u
        WHERE u.username IN (SELECT jsonb_array_elements_text(detail -> 'members'))));
  END IF;
  IF jsonb_typeof(detail -> 'assessors') = 'object' THEN
    INSERT INTO judging_importedname (assessor_id, source, name)
    SELECT a.id, coalesce(detail ->> 'source', ''), named.value
      FROM jsonb_each_text(detail -> 'assessors') named
      JOIN touchstone_user u ON u.username = named.key
      JOIN judging_assessor a ON a.user_id = u.id AND a.campaign_id = place
        ON CONFLICT (assessor_id) DO NOTHING;
    found := found || jsonb_build_object('assessors',
      (SELECT coalesce(jsonb_agg(u.id ORDER BY u.id), '[]') FROM touchstone_user u
        WHERE u.username IN (SELECT jsonb_object_keys(detail -> 'assessors'))));
  END IF;
  IF detail ? 'note' AND place IS NOT NULL THEN
    found := (found - 'note') || jsonb_build_object('invitation',
      (SELECT i.id FROM judging_invitation i WHERE i.campaign_id = place AND i.note = detail ->> 'note'
        ORDER BY least(abs(extract(epoch FROM i.created_at - moment)),
                       abs(extract(epoch FROM i.revoked_at - moment))), i.id LIMIT 1));
  END IF;
  RETURN found;
END $$;
CREATE FUNCTION judging_event_without_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.detail := judging_detail_without_names(NEW.subject, NEW.at, NEW.detail);
  RETURN NEW;
END $$;
CREATE TRIGGER touchstone_event_without_names BEFORE INSERT ON touchstone_event
  FOR EACH ROW EXECUTE FUNCTION judging_event_without_names();
"""
BACK = """
DROP TRIGGER touchstone_event_without_names ON touchstone_event;
DROP FUNCTION judging_event_without_names();
DROP FUNCTION judging_detail_without_names(text, timestamptz, jsonb);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("judging", "0018_kept_by_every_session"),
        ("touchstone", "0004_kept_by_every_session"),
    ]
    operations = [
        migrations.CreateModel(
            name="ImportedName",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("source", models.TextField()),
                ("name", models.TextField()),
                (
                    "assessor",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="imported_name",
                        to="judging.assessor",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(FUNCTIONS, BACK),
    ]
