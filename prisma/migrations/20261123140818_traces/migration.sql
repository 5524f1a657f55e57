-- First: a worker of the inbox locks deliveries before the rest, too, so the two can't wait for each other.
-- AlterTable
ALTER TABLE "webhook_deliveries" ADD COLUMN     "traceparent" TEXT;

-- AlterTable
ALTER TABLE "compliance_jobs" ADD COLUMN     "traceparents" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- AlterTable
ALTER TABLE "people" ADD COLUMN     "traceparent" TEXT;

-- AlterTable
ALTER TABLE "processing_sessions" ADD COLUMN     "traceparents" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- AlterTable
ALTER TABLE "session_requests" ADD COLUMN     "traceparents" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- AlterTable
ALTER TABLE "sessions" ADD COLUMN     "traceparents" TEXT[] DEFAULT ARRAY[]::TEXT[];
