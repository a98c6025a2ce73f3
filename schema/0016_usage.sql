-- How long workers took to compile, check and time candidates of a team's searches, by the day (days since 1970, UTC) on
-- which they reported, and how many candidates these were. Rows of the last week are kept.
CREATE TABLE search_time (
  team    TEXT    NOT NULL,
  day     INTEGER NOT NULL,
  trials  INTEGER NOT NULL,
  seconds REAL    NOT NULL,
  PRIMARY KEY (team, day)
) STRICT, WITHOUT ROWID;

-- Jobs that found no kernels are counted by team and graph, and a kernel's model is the label of a job that has it.
CREATE INDEX jobs_missed_of ON jobs (team, body_hash, created_ms) WHERE state = 5;
CREATE INDEX job_groups_key ON job_groups (key);
