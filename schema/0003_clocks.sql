-- The GPU's clock right after each of samples_ns, in MHz, separated by spaces; '' where it is not known.
ALTER TABLE trials ADD COLUMN clocks_mhz TEXT NOT NULL DEFAULT '';
