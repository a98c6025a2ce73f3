-- Teams: jobs and searches are of one, and the records of its searches are in its namespace unless they are shared. The
-- team '' stands for none: what it has is shared, in namespace 0. The generations of a key and environment are counted
-- over all teams.
CREATE TABLE namespaces (
  id   INTEGER PRIMARY KEY,
  name TEXT    NOT NULL UNIQUE  -- of the team
) STRICT;
INSERT INTO namespaces (id, name) VALUES (0, '');
ALTER TABLE jobs ADD COLUMN team TEXT NOT NULL DEFAULT '';
ALTER TABLE searches ADD COLUMN team TEXT NOT NULL DEFAULT '';
CREATE INDEX jobs_unfinished_of ON jobs (team) WHERE state < 2;
