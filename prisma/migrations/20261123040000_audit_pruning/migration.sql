-- The one way in which entries leave the trail: whole seals, the oldest first, and never younger than a year. It has
-- the rights of the owner, for the role that serves may remove nothing.
CREATE OR REPLACE FUNCTION "refuse_audit_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_setting('notebridge.audit_pruning', true) = 'on' THEN RETURN NULL; END IF;
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END
$$;

CREATE FUNCTION "prune_audit"(before timestamptz, OUT head text, OUT entries int)
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
  SELECT max(oldest.no), array_agg(entry) INTO last_no, ids
  FROM (SELECT s.no, s.at, s.entries FROM audit_seals s ORDER BY s.no LIMIT 200) AS oldest, unnest(oldest.entries) AS entry
  WHERE oldest.at < before;
  IF last_no IS NULL THEN RETURN; END IF;
  SELECT s.no || ':' || encode(s.mac, 'hex') INTO head FROM audit_seals s WHERE s.no = last_no;
  PERFORM set_config('notebridge.audit_pruning', 'on', true);
  DELETE FROM audit_entries e WHERE e.id = ANY (ids);
  GET DIAGNOSTICS entries = ROW_COUNT;
  DELETE FROM audit_seals s WHERE s.no <= last_no;
  PERFORM set_config('notebridge.audit_pruning', 'off', true);
END
$$;
