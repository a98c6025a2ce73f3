-- What signed records are no longer right (docs/design/trust.md#generations). scope: 'signer:' and the public key of this
-- coordinator, with the generation below which no record that it has signed is right; 'key:' and a problem key likewise, for
-- its records alone; 'last', with the last generation that was given.
CREATE TABLE floors (
  scope      TEXT    PRIMARY KEY,
  generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- What other coordinators said of theirs last: a StoreHead.
CREATE TABLE heads (
  signer  TEXT    PRIMARY KEY,
  unix_ms INTEGER NOT NULL,
  payload BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
