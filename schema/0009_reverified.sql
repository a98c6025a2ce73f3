-- Kernels that other compilers or another driver made, and that are verified and timed again in the environment of a
-- worker. The rows of a job are what it does, and afterwards what became of them. Such a job has no graph.
CREATE TABLE reverified (
  job_id             INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  digest             TEXT    NOT NULL,            -- of the record of the other environment
  key                TEXT    NOT NULL,
  environment_before TEXT    NOT NULL,
  environment        TEXT    NOT NULL,            -- in which it is verified
  outcome            INTEGER NOT NULL DEFAULT 0 CHECK (outcome BETWEEN 0 AND 3),  -- waiting, kept, moved, lost
  plan_before        TEXT    NOT NULL DEFAULT '',
  plan               TEXT    NOT NULL DEFAULT '', -- of what is served in the environment; '': nothing is
  before_ns          REAL    NOT NULL DEFAULT 0,
  ns                 REAL    NOT NULL DEFAULT 0,
  message            TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (job_id, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX reverified_in ON reverified (environment);
