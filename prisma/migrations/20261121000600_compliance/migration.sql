-- AlterTable
ALTER TABLE "compliance_jobs" ADD COLUMN     "fetched_at" TIMESTAMPTZ(3),
ADD COLUMN     "request" BYTEA,
ADD COLUMN     "submitted_at" TIMESTAMPTZ(3);
