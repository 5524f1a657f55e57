-- Leases of processes instead of tokens that end by time (src/queue/due-rows).
ALTER TABLE "sessions" DROP COLUMN "lease_token", DROP COLUMN "lease_until",
  ADD COLUMN "lane" SMALLINT NOT NULL DEFAULT 0,
  ADD COLUMN "lease_owner" UUID,
  ADD COLUMN "lease_no" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "lease_safe_at" TIMESTAMPTZ(3),
  ADD COLUMN "reopened_at" TIMESTAMPTZ(3);
ALTER TABLE "processing_sessions" DROP COLUMN "lease_token", DROP COLUMN "lease_until",
  ADD COLUMN "lane" SMALLINT NOT NULL DEFAULT 0,
  ADD COLUMN "lease_owner" UUID,
  ADD COLUMN "lease_no" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "lease_safe_at" TIMESTAMPTZ(3);

-- Whose turn it is.
DROP INDEX "sessions_due_at_idx";
DROP INDEX "processing_sessions_due_at_idx";
CREATE INDEX "sessions_due_idx" ON "sessions"("lane", "due_at", "id") WHERE "due_at" IS NOT NULL;
CREATE INDEX "processing_sessions_due_idx" ON "processing_sessions"("lane", "due_at", "processing_id")
  WHERE "due_at" IS NOT NULL;

-- What is counted, told and watched: a few rows of many.
DROP INDEX "sessions_news_at_idx";
CREATE INDEX "sessions_news_idx" ON "sessions"("news_at") WHERE "news_at" IS NOT NULL;
CREATE INDEX "sessions_backlog_idx" ON "sessions"("fault")
  WHERE "due_at" IS NOT NULL AND "wanted_generation" > "fetched_generation";
CREATE INDEX "sessions_refused_idx" ON "sessions"("id")
  WHERE "due_at" IS NOT NULL AND "fault" = 'platform-unauthorized';
CREATE INDEX "session_requests_open_idx" ON "session_requests"("state", "requested_at")
  WHERE "state" IN ('Requested', 'Unknown');
CREATE INDEX "processing_sessions_session_idx" ON "processing_sessions"("session") WHERE "session" IS NOT NULL;

-- Lists, in the order of their pages.
DROP INDEX "sessions_provider_user_id_idx";
CREATE INDEX "sessions_provider_user_id_updated_at_id_idx" ON "sessions"("provider_user_id", "updated_at", "id");
CREATE INDEX "sessions_state_updated_at_id_idx" ON "sessions"("state", "updated_at", "id");
-- A list that is waiting to be put into the index would be read through by every look-up of a client.
ALTER INDEX "sessions_client_user_ids_idx" SET (fastupdate = off);
