-- Of deliveries that were handled before, the subject is sealed in the body: it is known once they are replayed.
-- AlterTable
ALTER TABLE "webhook_deliveries" ADD COLUMN     "subject" TEXT;

-- CreateTable
CREATE TABLE "session_calls" (
    "id" BIGSERIAL NOT NULL,
    "session" UUID NOT NULL,
    "operation" TEXT NOT NULL,
    "begun_at" TIMESTAMPTZ(3) NOT NULL,
    "duration_ms" INTEGER,
    "outcome" TEXT NOT NULL,
    "status" INTEGER,

    CONSTRAINT "session_calls_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "session_calls_session_begun_at_id_idx" ON "session_calls"("session", "begun_at", "id");

-- CreateIndex
CREATE INDEX "webhook_deliveries_subject_received_at_id_idx" ON "webhook_deliveries"("subject", "received_at", "id");
