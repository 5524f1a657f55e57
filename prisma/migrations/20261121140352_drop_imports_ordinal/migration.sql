-- DropIndex
DROP INDEX "imports_ordinal_key";

-- AlterTable
ALTER TABLE "imports" DROP COLUMN "ordinal";
