-- The store of a coordinator. Every change of state is one transaction, and it is answered after its commit.
-- Times *_ms are Unix milliseconds; samples are nanoseconds, space separated.

-- A tuning job. Its groups and searches are a pure function of graph, options and device, so they are not stored.
CREATE TABLE jobs (
  id            INTEGER PRIMARY KEY,
  request_id    TEXT    NOT NULL UNIQUE CHECK (request_id <> ''),
  body_hash     TEXT    NOT NULL,           -- a request_id that comes again with another body is an error
  label         TEXT    NOT NULL,
  graph         TEXT    NOT NULL,
  options       BLOB    NOT NULL,
  device        BLOB,                       -- once known
  state         INTEGER NOT NULL CHECK (state BETWEEN 0 AND 5),
  cached        INTEGER NOT NULL DEFAULT 0,
  cancelling    INTEGER NOT NULL DEFAULT 0,
  result        BLOB,
  error_code    INTEGER NOT NULL DEFAULT 0,
  error_message TEXT    NOT NULL DEFAULT '',
  created_ms    INTEGER NOT NULL,
  started_ms    INTEGER NOT NULL DEFAULT 0,
  finished_ms   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX jobs_unfinished ON jobs (state) WHERE state < 2;

-- The search for the best kernel of one key under one environment. `retune` begins a new generation.
CREATE TABLE searches (
  id          INTEGER PRIMARY KEY,
  key         TEXT    NOT NULL,
  environment TEXT    NOT NULL,
  generation  INTEGER NOT NULL,
  strategy    TEXT    NOT NULL,
  seed        INTEGER NOT NULL,
  UNIQUE (key, environment, generation)
) STRICT;

-- Which search serves which group of a job. A job that is resumed finds its searches here, also after a retune.
CREATE TABLE job_groups (
  job_id    INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  key       TEXT    NOT NULL,
  search_id INTEGER NOT NULL REFERENCES searches (id),
  PRIMARY KEY (job_id, key)
) STRICT, WITHOUT ROWID;

-- A round of candidates: trials first_trial .. first_trial + size - 1 of a search. Phase 0 is a round of the search, phase
-- n > 0 is the n-th promotion. The candidates follow from the trials before them and are not stored. A report must carry
-- lease_id and attempt as they are here (a fencing token).
CREATE TABLE batches (
  id          TEXT    PRIMARY KEY,
  search_id   INTEGER NOT NULL REFERENCES searches (id),
  phase       INTEGER NOT NULL CHECK (phase >= 0),
  first_trial INTEGER NOT NULL,
  size        INTEGER NOT NULL CHECK (size > 0),
  check_seed  INTEGER NOT NULL DEFAULT 0,   -- of a promotion: its unpredictable seed
  state       TEXT    NOT NULL CHECK (state IN ('ready', 'leased', 'done')),
  attempt     INTEGER NOT NULL DEFAULT 0,
  failures    INTEGER NOT NULL DEFAULT 0,   -- leases that ended without a report
  lease_id    TEXT    NOT NULL DEFAULT '',
  worker      TEXT    NOT NULL DEFAULT '',
  UNIQUE (search_id, phase, first_trial)
) STRICT, WITHOUT ROWID;
CREATE INDEX batches_open ON batches (search_id) WHERE state <> 'done';

-- The outcome of a candidate. Written in the transaction that consumes the lease; never changed.
CREATE TABLE trials (
  search_id     INTEGER NOT NULL REFERENCES searches (id),
  phase         INTEGER NOT NULL,
  trial         INTEGER NOT NULL,
  plan          TEXT    NOT NULL,
  outcome       INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 5),
  samples_ns    TEXT    NOT NULL,
  hopeless      INTEGER NOT NULL,
  max_error     REAL,                       -- NULL: not a number
  bound         REAL,
  message       TEXT    NOT NULL,
  compile_s     REAL    NOT NULL,
  check_s       REAL    NOT NULL,
  measure_s     REAL    NOT NULL,
  object_sha256 TEXT    NOT NULL,
  worker        TEXT    NOT NULL,
  PRIMARY KEY (search_id, phase, trial)
) STRICT, WITHOUT ROWID;

-- Records: the promoted kernels. Each key and environment has at most one blessed record; older ones stay readable by
-- digest.
CREATE TABLE records (
  digest      TEXT    PRIMARY KEY,
  key         TEXT    NOT NULL,
  environment TEXT    NOT NULL,
  search_id   INTEGER NOT NULL REFERENCES searches (id),
  blessed     INTEGER NOT NULL CHECK (blessed IN (0, 1)),
  payload     BLOB    NOT NULL,
  created_ms  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_blessed ON records (key, environment) WHERE blessed = 1;

-- Whole answers of jobs, so that the same job again costs one look-up. An answer is deleted when a record of one of its
-- keys changes.
CREATE TABLE results (
  id           TEXT    PRIMARY KEY,         -- graph text, device, environment and policies
  trials_asked INTEGER NOT NULL,
  budget_s     REAL    NOT NULL,
  payload      BLOB    NOT NULL
) STRICT;
CREATE TABLE result_keys (
  key       TEXT NOT NULL,
  result_id TEXT NOT NULL REFERENCES results (id) ON DELETE CASCADE,
  PRIMARY KEY (key, result_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
  digest TEXT PRIMARY KEY,
  bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE workers (
  name  TEXT    PRIMARY KEY,
  epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every device that ever registered, so that jobs are answered from the store while no worker is there.
CREATE TABLE devices (
  fingerprint TEXT    NOT NULL,
  environment TEXT    NOT NULL,
  payload     BLOB    NOT NULL,
  seen_ms     INTEGER NOT NULL,
  PRIMARY KEY (fingerprint, environment)
) STRICT, WITHOUT ROWID;
