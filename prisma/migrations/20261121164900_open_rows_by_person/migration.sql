-- From people to their open rows: held, taken back and counted a hundred thousand at once, just after they came, when
-- the planner knows little of them and takes either side of the join for a few rows.
CREATE INDEX "import_rows_open_person_idx" ON "import_rows"("person_id") WHERE "outcome" = 'pending';
