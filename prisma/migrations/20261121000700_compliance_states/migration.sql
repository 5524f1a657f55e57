-- CreateIndex
CREATE INDEX "compliance_jobs_state_created_at_idx" ON "compliance_jobs"("state", "created_at");
