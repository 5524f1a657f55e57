-- AlterEnum
-- By itself: a value that a transaction adds can't be used before its commit.
ALTER TYPE "delivery_state" ADD VALUE 'not-understood' BEFORE 'failed';
