-- What was removed leaves a row that says since when.
ALTER TABLE "compliance_jobs" ADD COLUMN "removed_at" TIMESTAMPTZ(3);
CREATE INDEX "compliance_jobs_updated_at_idx" ON "compliance_jobs"("updated_at") WHERE "removed_at" IS NULL;
