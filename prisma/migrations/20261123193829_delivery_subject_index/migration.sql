-- In the place of an index that holds those without a subject, too.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "webhook_deliveries_about_idx" ON "webhook_deliveries"("subject", "received_at", "id") WHERE "subject" IS NOT NULL;
