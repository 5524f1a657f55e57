-- Calls that are old enough to go.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "session_calls_begun_at_idx" ON "session_calls"("begun_at");
