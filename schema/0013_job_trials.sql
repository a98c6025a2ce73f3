-- How many trials a job's groups had when it ended, its own and those of earlier searches that it went on with; 0 for jobs
-- that came before.
ALTER TABLE jobs ADD COLUMN trials INTEGER NOT NULL DEFAULT 0;
