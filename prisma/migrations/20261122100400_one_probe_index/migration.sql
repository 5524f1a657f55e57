-- Who probes is found by lane and step, and among the refused by their moments.
DROP INDEX "people_probe_idx";
