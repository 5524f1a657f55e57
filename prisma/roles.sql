-- Creates the role with which the service runs, and grants it what it needs in this database. It owns nothing, so it can
-- change neither the schema nor the audit log. Run it with psql (14 or later) as the role of DATABASE_OWNER_URL, which
-- needs CREATEROLE unless the role exists:
--
--   SERVICE_PASSWORD=… psql "$DATABASE_OWNER_URL" --set=ON_ERROR_STOP=1 --file=prisma/roles.sql
--
-- SERVICE_PASSWORD_FILE names a file that holds the password instead.
-- It works before the first `npm start migrate` and after it. A role that exists already keeps its password. For another
-- name of the role, replace notebridge_service. The tables are in the owner's current schema. If that is not public, the
-- role gets it as its search path.
\getenv password SERVICE_PASSWORD
\getenv password_file SERVICE_PASSWORD_FILE
\if :{?password_file}
  \set password `cat "$SERVICE_PASSWORD_FILE"`
\endif
SET notebridge.service_password = :'password';

DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'notebridge_service') THEN
    EXECUTE format('CREATE ROLE notebridge_service LOGIN PASSWORD %L', current_setting('notebridge.service_password'));
  END IF;
END $$;

-- Default privileges: what migrate creates as this owner. The queues' schema, bullmq, is created by migrate, too.
ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO notebridge_service;
ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO notebridge_service;
ALTER DEFAULT PRIVILEGES GRANT USAGE, SELECT ON SEQUENCES TO notebridge_service;
-- Otherwise every role of the server may execute functions, among them those that run with the owner's rights.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO notebridge_service;

DO $$
DECLARE
  -- Imports renew the statistics of their tables (ANALYZE), for which PostgreSQL below 17 has no privilege.
  has_maintain boolean := current_setting('server_version_num')::int >= 170000;
  schema_name text;
BEGIN
  IF current_schema() <> 'public' THEN
    EXECUTE format('ALTER ROLE notebridge_service IN DATABASE %I SET search_path = %I', current_database(), current_schema());
  END IF;
  IF has_maintain THEN ALTER DEFAULT PRIVILEGES GRANT MAINTAIN ON TABLES TO notebridge_service; END IF;
  -- What exists already.
  FOR schema_name IN SELECT nspname FROM pg_namespace WHERE nspname IN (current_schema(), 'bullmq') LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO notebridge_service', schema_name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO notebridge_service', schema_name);
    EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO notebridge_service', schema_name);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %I TO notebridge_service', schema_name);
    IF has_maintain THEN
      EXECUTE format('GRANT MAINTAIN ON ALL TABLES IN SCHEMA %I TO notebridge_service', schema_name);
    END IF;
  END LOOP;
END $$;
