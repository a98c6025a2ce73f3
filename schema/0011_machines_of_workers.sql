-- The machine of a worker (docs/design/trust.md#machines), as it said itself; '' of those that came before, or did not say.
ALTER TABLE workers ADD COLUMN machine TEXT NOT NULL DEFAULT '';
