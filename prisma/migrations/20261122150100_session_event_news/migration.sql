-- AlterTable
ALTER TABLE "sessions" ADD COLUMN     "ai_notes_started" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "state_from_events" BOOLEAN NOT NULL DEFAULT false;

-- What is on record may have been told by the start: only a later start may change it.
UPDATE "sessions" SET "ai_notes_started" = true WHERE "ai_notes_final";
