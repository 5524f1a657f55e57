-- AlterTable
ALTER TABLE "sessions" ADD COLUMN     "update_until" TIMESTAMPTZ(3);
