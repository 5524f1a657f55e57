-- AlterTable
ALTER TABLE "import_rows" DROP COLUMN "raw";

-- CreateTable
CREATE TABLE "import_cells" (
    "import_id" UUID NOT NULL,
    "first_row" INTEGER NOT NULL,
    "last_row" INTEGER NOT NULL,
    "sealed" BYTEA NOT NULL,

    CONSTRAINT "import_cells_pkey" PRIMARY KEY ("import_id","first_row")
);

-- Most steps of an import look at its open rows only, of which a re-import has few among many.
CREATE INDEX "import_rows_pending_idx" ON "import_rows"("import_id", "row_no") WHERE "outcome" = 'pending';

CREATE INDEX "import_rows_rejected_idx" ON "import_rows"("import_id", "row_no") WHERE "outcome" = 'rejected';
