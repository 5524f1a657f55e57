-- An attempt to create a session that counted as lost is not told twice when its answer comes.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "session_calls_attempt_key" ON "session_calls"("session", "attempt") WHERE "attempt" IS NOT NULL;
