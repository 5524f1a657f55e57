-- AlterTable
ALTER TABLE "compliance_jobs" ADD COLUMN     "refused_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "processing_sessions" ADD COLUMN     "refused_at" TIMESTAMPTZ(3);
