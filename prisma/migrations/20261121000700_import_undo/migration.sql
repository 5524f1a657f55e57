-- AlterTable
ALTER TABLE "import_rows" ADD COLUMN     "applied" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "was" JSONB;
