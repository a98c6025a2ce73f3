-- How often programs of a team ran a kernel, and how long, by day (days since 1970, UTC). Rows of the last week are kept.
CREATE TABLE uses (
  team  TEXT    NOT NULL,
  key   BLOB    NOT NULL CHECK (length(key) = 32),
  day   INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  ns    INTEGER NOT NULL,
  PRIMARY KEY (team, key, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX uses_day ON uses (day);

-- Whether the coordinator made the job by itself. Such jobs do not count as jobs of their team.
ALTER TABLE jobs ADD COLUMN own INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_missed ON jobs (created_ms, body_hash) WHERE state = 5;
UPDATE jobs SET own = 1 WHERE id IN (SELECT job_id FROM reverified);
