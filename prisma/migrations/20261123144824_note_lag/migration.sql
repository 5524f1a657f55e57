-- AlterTable
ALTER TABLE "document_revisions" ADD COLUMN     "event_at" TIMESTAMPTZ(3);

-- Sessions whose newest event no fetch has answered yet, by that event.
CREATE INDEX "sessions_awaited_idx" ON "sessions"("last_event_at") WHERE "due_at" IS NOT NULL AND "wanted_generation" > "fetched_generation" AND ("fetched_at" IS NULL OR "last_event_at" > "fetched_at");
