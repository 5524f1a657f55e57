-- AlterTable
ALTER TABLE "imports" ADD COLUMN     "attempt_at" TIMESTAMPTZ(3),
ADD COLUMN     "attempts" INTEGER NOT NULL DEFAULT 0;
