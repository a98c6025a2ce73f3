-- Records are listed by the machine that they are for: its target and its name, which a record's payload has.
CREATE TABLE machines (
  id   INTEGER PRIMARY KEY,
  name TEXT    NOT NULL UNIQUE  -- "cpu:avx512 AMD EPYC 7B13"
) STRICT;
INSERT OR IGNORE INTO machines (name)
  SELECT record_part(bytes, 'machine') FROM payloads WHERE record_part(bytes, 'machine') IS NOT NULL;
ALTER TABLE records ADD COLUMN machine INTEGER REFERENCES machines (id);
UPDATE records SET machine = (
  SELECT m.id FROM payloads p JOIN machines m ON m.name = record_part(p.bytes, 'machine') WHERE p.record = records.id);
CREATE INDEX records_of_machine ON records (machine, created_ms, digest) WHERE blessed = 1;
