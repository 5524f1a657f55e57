-- CreateEnum
CREATE TYPE "delivery_state" AS ENUM ('received', 'processed', 'ignored', 'failed', 'dead');

-- CreateTable
CREATE TABLE "webhook_deliveries" (
    "id" BIGSERIAL NOT NULL,
    "signature" BYTEA NOT NULL,
    "body" BYTEA NOT NULL,
    "sent_at" BIGINT NOT NULL,
    "secret_index" SMALLINT NOT NULL,
    "event_type" TEXT,
    "state" "delivery_state" NOT NULL DEFAULT 'received',
    "reason" TEXT,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "repeats" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP,
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "processed_at" TIMESTAMPTZ(3),

    CONSTRAINT "webhook_deliveries_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_repeats" (
    "id" BIGSERIAL NOT NULL,
    "signature" BYTEA NOT NULL,
    "times" INTEGER NOT NULL,
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhook_repeats_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_rejections" (
    "minute" TIMESTAMPTZ(3) NOT NULL,
    "cause" TEXT NOT NULL,
    "count" BIGINT NOT NULL,

    CONSTRAINT "webhook_rejections_pkey" PRIMARY KEY ("minute","cause")
);

-- CreateIndex
CREATE UNIQUE INDEX "webhook_deliveries_signature_key" ON "webhook_deliveries"("signature");

-- CreateIndex
-- Partial: what is done costs the index nothing. Prisma neither writes nor compares the condition.
CREATE INDEX "webhook_deliveries_due_at_idx" ON "webhook_deliveries"("due_at") WHERE "due_at" IS NOT NULL;

-- CreateIndex
-- Partial: the receiver does not pay for it. Open deliveries are found by the index above.
CREATE INDEX "webhook_deliveries_state_id_idx" ON "webhook_deliveries"("state", "id") WHERE "state" IN ('ignored', 'dead');

