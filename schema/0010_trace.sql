-- The trace id of a job (proto/trace.h), by which lines of logs are found; '' for jobs that came before.
ALTER TABLE jobs ADD COLUMN trace TEXT NOT NULL DEFAULT '';
