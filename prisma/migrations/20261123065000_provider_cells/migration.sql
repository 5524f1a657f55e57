-- Cells of the providers column that led to nobody may be names. Rows that no plan reads again lose them, and so do the
-- statistics of the column.
UPDATE "import_rows" r SET "providers" = ARRAY(
  SELECT one FROM unnest(r."providers") WITH ORDINALITY AS named(one, place)
  WHERE EXISTS (SELECT 1 FROM "people" p WHERE p."kind" = 'provider' AND p."external_id" = one) ORDER BY place)
FROM "imports" i
WHERE i."id" = r."import_id" AND r."kind" = 'client' AND r."providers" <> '{}'
  AND (r."outcome" = 'rejected' OR i."state" IN ('cancelled', 'failed') AND r."planned" IS NULL);
ANALYZE "import_rows" ("providers");
