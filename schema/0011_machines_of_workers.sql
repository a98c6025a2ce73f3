-- The machine of a worker (docs/decisions/0083-machines.md), as it said itself; '' of those that came before, or did not say.
ALTER TABLE workers ADD COLUMN machine TEXT NOT NULL DEFAULT '';
