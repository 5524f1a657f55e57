-- Leases of processes for look-ups (src/queue/due-rows); lease_token and lease_until stay with submissions.
ALTER TABLE "compliance_jobs" ADD COLUMN "lane" SMALLINT NOT NULL DEFAULT 0,
  ADD COLUMN "lease_owner" UUID,
  ADD COLUMN "lease_no" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "lease_safe_at" TIMESTAMPTZ(3);
UPDATE "compliance_jobs" SET "due_at" = NULL WHERE "job_id" IS NULL;
UPDATE "compliance_jobs" SET "lease_token" = NULL, "lease_until" = NULL WHERE "job_id" IS NOT NULL;

-- Whose turn it is.
DROP INDEX "compliance_jobs_due_at_idx";
CREATE INDEX "compliance_jobs_due_idx" ON "compliance_jobs"("lane", "due_at", "id") WHERE "due_at" IS NOT NULL;

-- CreateTable
CREATE TABLE "compliance_aliases" (
    "id" UUID NOT NULL,
    "job" UUID NOT NULL,

    CONSTRAINT "compliance_aliases_pkey" PRIMARY KEY ("id")
);

-- A job that the platform did not know was never asked for again.
UPDATE "compliance_jobs" SET "due_at" = now() WHERE "fault" = 'gone' AND "job_id" IS NOT NULL AND "due_at" IS NULL;
