-- AlterTable
ALTER TABLE "people" ADD COLUMN "refused_at" TIMESTAMPTZ(3),
ADD COLUMN "refused_operation" TEXT;

-- AlterTable
ALTER TABLE "circuits" DROP COLUMN "opened_by",
ADD COLUMN "code" TEXT NOT NULL DEFAULT 'platform-unauthorized';

-- CreateTable
CREATE TABLE "platform_addresses" (
    "address" TEXT NOT NULL,
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "platform_addresses_pkey" PRIMARY KEY ("address")
);

-- Who probes an operation that was refused: the one whom it refused longest ago or never.
CREATE INDEX "people_probe_idx" ON "people"("step", "refused_at" NULLS FIRST, "due_at")
  WHERE "due_at" IS NOT NULL AND "held_by" IS NULL;
