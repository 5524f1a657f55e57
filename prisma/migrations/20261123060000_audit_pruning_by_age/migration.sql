-- The service may add seals, so what one says of its age and its entries is no proof: the cut ends before the first seal
-- that is young, and takes no entry that is.
CREATE OR REPLACE FUNCTION "prune_audit"(before timestamptz, OUT head text, OUT entries int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  last_no bigint;
  ids bigint[];
BEGIN
  entries := 0;
  IF before > clock_timestamp() - interval '365 days' THEN
    RAISE EXCEPTION 'the audit trail is kept for a year at least';
  END IF;
  PERFORM pg_advisory_xact_lock(727008);
  SELECT max(cut.no), array_agg(entry) INTO last_no, ids
  FROM (
    SELECT oldest.no, oldest.entries AS sealed, bool_and(oldest.at < before) OVER (ORDER BY oldest.no) AS is_old
    FROM (SELECT s.no, s.at, s.entries FROM audit_seals s ORDER BY s.no LIMIT 200) AS oldest
  ) AS cut, unnest(cut.sealed) AS entry
  WHERE cut.is_old;
  IF last_no IS NULL THEN RETURN; END IF;
  SELECT s.no || ':' || encode(s.mac, 'hex') INTO head FROM audit_seals s WHERE s.no = last_no;
  PERFORM set_config('notebridge.audit_pruning', 'on', true);
  DELETE FROM audit_entries e WHERE e.id = ANY (ids) AND e.at < before;
  GET DIAGNOSTICS entries = ROW_COUNT;
  DELETE FROM audit_seals s WHERE s.no <= last_no;
  PERFORM set_config('notebridge.audit_pruning', 'off', true);
END
$$;
