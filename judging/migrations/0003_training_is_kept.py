"""What no unique or check constraint can say about coming in: a participant is an assessor of the campaign he came
for; training is about the campaign's own collection and scale, stays as it is from the first answer on, and nobody
answers more often than he may."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION judging_check_participant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM judging_assessor a WHERE a.id = NEW.assessor_id AND a.campaign_id = NEW.campaign_id) THEN
    RAISE EXCEPTION 'participant: the assessor is not of this campaign'
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_participant_own_assessor';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER judging_participant_check BEFORE INSERT OR UPDATE OF campaign_id, assessor_id ON judging_participant
  FOR EACH ROW EXECUTE FUNCTION judging_check_participant();

CREATE FUNCTION judging_check_trainingitem() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  touched judging_trainingitem := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
  IF EXISTS (SELECT 1 FROM judging_traininganswer t JOIN judging_trainingitem i ON i.id = t.item_id
              WHERE i.campaign_id = touched.campaign_id) THEN
    RAISE EXCEPTION 'training: somebody has answered, so it stays as it is'
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_trainingitem_kept';
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  IF NOT EXISTS (
      SELECT 1 FROM judging_campaign c
        JOIN judging_grade g ON g.scale_id = c.scale_id AND g.value = NEW.grade
        JOIN judging_topic t ON t.collection_id = c.collection_id AND t.id = NEW.topic_id
        JOIN judging_document d ON d.collection_id = c.collection_id AND d.id = NEW.document_id
       WHERE c.id = NEW.campaign_id) THEN
    RAISE EXCEPTION 'training: grade % is off the scale, or the pair is not of the campaign''s collection', NEW.grade
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_trainingitem_own';
  END IF;
  IF EXISTS (SELECT 1 FROM judging_item i WHERE i.campaign_id = NEW.campaign_id AND i.topic_id = NEW.topic_id
                                            AND i.document_id = NEW.document_id) THEN
    RAISE EXCEPTION 'training: the campaign has this pair judged, so nobody may be told its grade'
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_trainingitem_no_item';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER judging_trainingitem_check BEFORE INSERT OR UPDATE OR DELETE ON judging_trainingitem
  FOR EACH ROW EXECUTE FUNCTION judging_check_trainingitem();

CREATE FUNCTION judging_check_traininganswer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
      SELECT 1 FROM judging_trainingitem i
        JOIN judging_campaign c ON c.id = i.campaign_id
        JOIN judging_assessor a ON a.campaign_id = c.id AND a.id = NEW.assessor_id
        JOIN judging_grade g ON g.scale_id = c.scale_id AND g.value = NEW.grade
       WHERE i.id = NEW.item_id) THEN
    RAISE EXCEPTION 'training: grade % is off the scale, or the assessor is not of the item''s campaign', NEW.grade
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_traininganswer_own';
  END IF;
  IF NEW.attempt > (SELECT c.training_attempts FROM judging_assessor a
                      JOIN judging_campaign c ON c.id = a.campaign_id WHERE a.id = NEW.assessor_id)
                 + (SELECT count(*) FROM judging_traininggrant g WHERE g.assessor_id = NEW.assessor_id) THEN
    RAISE EXCEPTION 'training: no attempt is left'
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_traininganswer_attempts';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER judging_traininganswer_check BEFORE INSERT ON judging_traininganswer
  FOR EACH ROW EXECUTE FUNCTION judging_check_traininganswer();

CREATE TRIGGER judging_traininggrant_append_only BEFORE UPDATE OR DELETE ON judging_traininggrant
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
"""
BACK = """
DROP TRIGGER judging_participant_check ON judging_participant;
DROP FUNCTION judging_check_participant();
DROP TRIGGER judging_trainingitem_check ON judging_trainingitem;
DROP FUNCTION judging_check_trainingitem();
DROP TRIGGER judging_traininganswer_check ON judging_traininganswer;
DROP FUNCTION judging_check_traininganswer();
DROP TRIGGER judging_traininggrant_append_only ON judging_traininggrant;
"""


class Migration(migrations.Migration):
    dependencies = [("judging", "0002_facts_are_kept")]
    operations = [migrations.RunSQL(FORWARD, BACK)]
