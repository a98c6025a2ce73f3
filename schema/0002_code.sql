-- What the compiler made of a GPU kernel, before any GPU time; '' on CPUs. clock_mhz: of the GPU while it was timed.
ALTER TABLE trials ADD COLUMN code TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN clock_mhz INTEGER NOT NULL DEFAULT 0;
