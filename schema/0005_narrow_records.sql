-- What is looked up, listed and evicted is apart from what is only served. Keys and digests are the 32 bytes of a
-- SHA-256; sha256, key_bytes, row_digest and record_part are functions of server/store/functions.h.
CREATE TABLE environments (
  id   INTEGER PRIMARY KEY,
  name TEXT    NOT NULL UNIQUE
) STRICT;
INSERT INTO environments (name) SELECT DISTINCT environment FROM records ORDER BY 1;

-- Source text and preludes, each stored once however many records have it.
CREATE TABLE texts (
  id     INTEGER PRIMARY KEY,
  digest BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
  bytes  BLOB    NOT NULL
) STRICT;

-- Each namespace, key and environment has at most one blessed record; older ones stay readable by digest. A pinned record
-- is never evicted, nor is a blessed one.
ALTER TABLE records RENAME TO wide_records;
DROP INDEX records_blessed;
CREATE TABLE records (
  id          INTEGER PRIMARY KEY,
  digest      BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
  key         BLOB    NOT NULL CHECK (length(key) = 32),
  namespace   INTEGER NOT NULL DEFAULT 0,
  environment INTEGER NOT NULL REFERENCES environments (id),
  search_id   INTEGER NOT NULL REFERENCES searches (id),
  object      BLOB    CHECK (length(object) = 32),
  blessed     INTEGER NOT NULL CHECK (blessed IN (0, 1)),
  pinned      INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
  created_ms  INTEGER NOT NULL,
  used_ms     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_blessed ON records (key, environment, namespace) WHERE blessed = 1;
CREATE INDEX records_newest ON records (created_ms, digest) WHERE blessed = 1;
CREATE INDEX records_idle ON records (used_ms) WHERE blessed = 0 AND pinned = 0;
CREATE INDEX records_search ON records (search_id);
CREATE INDEX records_object ON records (object) WHERE object IS NOT NULL;

-- The message of a record without its texts.
CREATE TABLE payloads (
  record  INTEGER PRIMARY KEY REFERENCES records (id) ON DELETE CASCADE,
  prelude INTEGER NOT NULL REFERENCES texts (id),
  source  INTEGER NOT NULL REFERENCES texts (id),
  digest  BLOB    NOT NULL CHECK (length(digest) = 32),  -- SHA-256 of bytes
  bytes   BLOB    NOT NULL
) STRICT;
CREATE INDEX payloads_prelude ON payloads (prelude);
CREATE INDEX payloads_source ON payloads (source);

INSERT OR IGNORE INTO texts (digest, bytes)
  SELECT sha256(record_part(payload, 'prelude')), record_part(payload, 'prelude') FROM wide_records
  WHERE record_part(payload, 'prelude') IS NOT NULL;
INSERT OR IGNORE INTO texts (digest, bytes)
  SELECT sha256(record_part(payload, 'source')), record_part(payload, 'source') FROM wide_records
  WHERE record_part(payload, 'source') IS NOT NULL;
-- A record that cannot be read is left behind: it was a miss, and is one.
INSERT INTO records (digest, key, environment, search_id, object, blessed, created_ms, used_ms)
  SELECT key_bytes(w.digest), key_bytes(w.key), e.id, w.search_id, record_part(w.payload, 'object'), w.blessed,
         w.created_ms, w.created_ms
  FROM wide_records w JOIN environments e ON e.name = w.environment
  WHERE record_part(w.payload, 'rest') IS NOT NULL ORDER BY w.rowid;
INSERT INTO payloads (record, prelude, source, digest, bytes)
  SELECT r.id, p.id, s.id, sha256(record_part(w.payload, 'rest')), record_part(w.payload, 'rest')
  FROM wide_records w JOIN records r ON r.digest = key_bytes(w.digest)
  JOIN texts p ON p.digest = sha256(record_part(w.payload, 'prelude'))
  JOIN texts s ON s.digest = sha256(record_part(w.payload, 'source'));
DROP TABLE wide_records;

-- Compiled objects are files beside the store (server/store/objects.h); a row is written after its file. Rows of blobs
-- become files when the store is opened, and the table stays empty.
CREATE TABLE objects (
  digest  BLOB    PRIMARY KEY CHECK (length(digest) = 32),
  size    INTEGER NOT NULL,
  used_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Damage of an answer or of a job's result is found when it is read.
ALTER TABLE results ADD COLUMN digest BLOB;
UPDATE results SET digest = row_digest(id, trials_asked, budget_s, payload);
ALTER TABLE jobs ADD COLUMN result_digest BLOB;
UPDATE jobs SET result_digest = row_digest(id, result) WHERE result IS NOT NULL;

-- Ends of leases find their batch. Batches that are done are kept while a job of their search is not: they tell a report
-- that comes twice.
CREATE INDEX batches_leased ON batches (lease_id) WHERE state = 'leased';
CREATE INDEX job_groups_search ON job_groups (search_id);
DELETE FROM batches WHERE state = 'done' AND search_id NOT IN
  (SELECT g.search_id FROM job_groups g JOIN jobs j ON j.id = g.job_id WHERE j.state < 2);
