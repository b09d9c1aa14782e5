from django.db import migrations, models

CHECK = """
CREATE OR REPLACE FUNCTION judging_check_slot() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
      SELECT 1 FROM judging_item i JOIN judging_campaign c ON c.id = i.campaign_id
       WHERE i.id = NEW.item_id AND i.campaign_id = NEW.campaign_id AND i.topic_id = NEW.topic_id
         AND (NEW.purpose <> 'judge' OR NEW.number BETWEEN 1 AND {wanted} + i.judgments_more)) THEN
    RAISE EXCEPTION 'slot: more than k, or not of its item''s campaign and topic'
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_slot_k';
  END IF;
  RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    """An item of a file that is all there is wants as many judgments as the file has of it."""

    dependencies = [("judging", "0010_judging_order")]

    operations = [
        migrations.AddField(
            model_name="item",
            name="judgments_wanted",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.CheckConstraint(
                condition=models.Q(("judgments_wanted__isnull", True), ("judgments_wanted__gte", 1), _connector="OR"),
                name="judging_item_judgments_wanted",
            ),
        ),
        migrations.RunSQL(
            CHECK.replace("{wanted}", "coalesce(i.judgments_wanted, c.judgments_per_item)"),
            CHECK.replace("{wanted}", "c.judgments_per_item"),
        ),
    ]
