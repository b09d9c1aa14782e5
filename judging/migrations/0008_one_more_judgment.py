from django.db import migrations, models

CHECK = """
CREATE OR REPLACE FUNCTION judging_check_slot() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
      SELECT 1 FROM judging_item i JOIN judging_campaign c ON c.id = i.campaign_id
       WHERE i.id = NEW.item_id AND i.campaign_id = NEW.campaign_id AND i.topic_id = NEW.topic_id
         AND (NEW.purpose <> 'judge' OR NEW.number BETWEEN 1 AND c.judgments_per_item{more})) THEN
    RAISE EXCEPTION 'slot: more than k, or not of its item''s campaign and topic'
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_slot_k';
  END IF;
  RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    """An item can want one judgment more than k: `judgments_more` says so, and the database allows as many slots."""

    dependencies = [("judging", "0007_pause_below")]

    operations = [
        migrations.AddField(
            model_name="item",
            name="judgments_more",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.CheckConstraint(
                condition=models.Q(("judgments_more__lte", 1)), name="judging_item_judgments_more"
            ),
        ),
        migrations.RunSQL(
            CHECK.replace("{more}", " + i.judgments_more"), CHECK.replace("{more}", "")
        ),
    ]
