-- AlterTable
ALTER TABLE "session_calls" ADD COLUMN     "attempt" INTEGER;
