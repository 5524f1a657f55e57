-- CreateTable
CREATE TABLE "feed_events" (
    "id" BIGSERIAL NOT NULL,
    "cursor" BIGINT,
    "type" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "subject" TEXT NOT NULL,
    "data" JSONB NOT NULL,

    CONSTRAINT "feed_events_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "feed_events_cursor_key" ON "feed_events"("cursor");
