-- What was removed leaves a row that says since when.
ALTER TABLE "document_revisions" ADD COLUMN "removed_at" TIMESTAMPTZ(3), ALTER COLUMN "notes" DROP NOT NULL;
ALTER TABLE "session_insights" ADD COLUMN "removed_at" TIMESTAMPTZ(3);
CREATE INDEX "document_revisions_fetched_at_idx" ON "document_revisions"("fetched_at") WHERE "notes" IS NOT NULL;
CREATE INDEX "session_insights_fetched_at_idx" ON "session_insights"("fetched_at") WHERE "removed_at" IS NULL;

-- From a client to the rows that say what is personal, or stand for raw rows that do; those of a re-import have nothing.
CREATE INDEX "import_rows_external_id_idx" ON "import_rows"("external_id")
    WHERE "profile" IS NOT NULL OR "was" IS NOT NULL OR "outcome" = 'rejected';
