-- CreateIndex
CREATE INDEX "platform_calls_granted_at_idx" ON "platform_calls"("granted_at");
