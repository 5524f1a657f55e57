-- The events of one client, for an export.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "feed_events_subject_id_idx" ON "feed_events"("subject", "id");
