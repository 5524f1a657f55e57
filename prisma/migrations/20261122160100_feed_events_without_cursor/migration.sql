-- The next cursors go to the oldest events without one; the schema language has no partial indexes.
CREATE INDEX "feed_events_without_cursor_idx" ON "feed_events"("id") WHERE "cursor" IS NULL;
