-- The candidates of a batch, so that a restarted coordinator offers the same ones: a line "TRIAL PLAN" for each. And the
-- workers that were lost while they had the batch, a line for each loss: they are the evidence against its candidates.
ALTER TABLE batches ADD COLUMN candidates TEXT NOT NULL DEFAULT '';
ALTER TABLE batches ADD COLUMN lost_on TEXT NOT NULL DEFAULT '';
-- Batches that were open when an older version ended do not name their candidates, so they are made anew.
DELETE FROM trials WHERE phase = 0 AND EXISTS (
  SELECT 1 FROM batches b WHERE b.search_id = trials.search_id AND b.phase = 0 AND b.state <> 'done'
    AND trials.trial >= b.first_trial);
DELETE FROM batches WHERE state <> 'done';
-- How often a coordinator began to plan the job without getting to the end: such a job may be what ended it.
ALTER TABLE jobs ADD COLUMN plan_attempts INTEGER NOT NULL DEFAULT 0;
-- Epochs count the processes of a name and are given by the coordinator. Those of older versions were what processes said.
UPDATE workers SET epoch = 0;
