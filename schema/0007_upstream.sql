-- Records that other coordinators made. origin: 0 searched here, 1 fetched from the upstream, 2 offered from below; those of 1
-- and 2 have the search 0, which stands for searches elsewhere and is made with the first of them. offered: whether the upstream
-- has the record.
ALTER TABLE records ADD COLUMN origin INTEGER NOT NULL DEFAULT 0 CHECK (origin BETWEEN 0 AND 2);
ALTER TABLE records ADD COLUMN offered INTEGER NOT NULL DEFAULT 0 CHECK (offered IN (0, 1));
CREATE INDEX records_unoffered ON records (id) WHERE blessed = 1 AND namespace = 0 AND offered = 0;
CREATE INDEX records_fetched ON records (id) WHERE blessed = 1 AND origin = 1;
