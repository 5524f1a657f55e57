-- Names of files and their headers can hold personal data: they are sealed. Rows hold the ordinal of their file.
ALTER TABLE "imports" DROP COLUMN "columns", ADD COLUMN "files" BYTEA;
ALTER TABLE "import_rows" ALTER COLUMN "file" TYPE INTEGER USING 0;
