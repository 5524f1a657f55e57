-- AlterTable
ALTER TABLE "session_requests" ADD COLUMN     "earlier_unknown" BOOLEAN NOT NULL DEFAULT false;

-- CreateIndex
CREATE INDEX "session_requests_correlation_id_provider_user_id_idx" ON "session_requests"("correlation_id", "provider_user_id");
