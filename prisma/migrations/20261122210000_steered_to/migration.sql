-- A pause, a cancel or a resume takes effect with its import's row; the people follow in batches that commit.
ALTER TABLE "imports" ADD COLUMN     "steered_to" INTEGER;
