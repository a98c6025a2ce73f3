-- Which graphs run a kernel: for each key and graph (SHA-256 of its text) the last job whose answer has the kernel beside
-- others.
CREATE TABLE programs (
  key    BLOB    NOT NULL CHECK (length(key) = 32),
  graph  BLOB    NOT NULL CHECK (length(graph) = 32),
  job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  PRIMARY KEY (key, graph)
) STRICT, WITHOUT ROWID;
CREATE INDEX programs_of ON programs (job_id);

-- Kernels that replaced others which programs run, and what was seen when both ran in such programs. The digests of
-- records are not references, since records may be evicted. Outcome: 0 for those that are not tried yet.
CREATE TABLE replaced (
  id          INTEGER PRIMARY KEY,
  key         BLOB    NOT NULL CHECK (length(key) = 32),
  environment INTEGER NOT NULL,
  namespace   INTEGER NOT NULL,
  before      BLOB    NOT NULL,           -- digests of records
  after       BLOB    NOT NULL,
  plan        TEXT    NOT NULL,           -- plan of the record `after`
  outcome     INTEGER NOT NULL DEFAULT 0,
  before_ns   REAL    NOT NULL DEFAULT 0, -- times of all programs together with each of the kernels
  after_ns    REAL    NOT NULL DEFAULT 0,
  calls       INTEGER NOT NULL DEFAULT 0,
  message     TEXT    NOT NULL DEFAULT '',
  made_ms     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX replaced_waiting ON replaced (key, environment, namespace) WHERE outcome = 0;
CREATE INDEX replaced_key ON replaced (key);
CREATE INDEX uses_key ON uses (key);
