-- DropIndex
DROP INDEX "compliance_jobs_state_created_at_idx";

-- CreateIndex
CREATE INDEX "compliance_jobs_created_at_id_idx" ON "compliance_jobs"("created_at", "id");

-- CreateIndex
CREATE INDEX "compliance_jobs_state_created_at_id_idx" ON "compliance_jobs"("state", "created_at", "id");

-- CreateIndex
CREATE INDEX "platform_calls_account_granted_at_idx" ON "platform_calls"("account", "granted_at");
