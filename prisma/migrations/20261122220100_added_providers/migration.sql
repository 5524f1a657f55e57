-- A row that leaves or adds to the providers of its client is planned anew with those that the client has by then.
ALTER TABLE "import_rows" ADD COLUMN     "added_providers" TEXT[];
