-- AlterTable
ALTER TABLE "import_rows" ADD COLUMN     "was_profile" BYTEA;

-- AlterTable
ALTER TABLE "sessions" ADD COLUMN     "facts" BYTEA;

-- A profile in a snapshot was sealed already: it moves to a column of its own.
UPDATE "import_rows" SET "was_profile" = decode("was"->>'profile', 'base64'), "was" = "was" - 'profile' WHERE "was" ? 'profile';
