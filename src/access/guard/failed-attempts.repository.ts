import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { AuditRepository } from '../audit/audit.repository.js';
import { type Actor, AuditSubjects } from '../audit/audit-record.js';
import { LOCKOUT_SECONDS, MOST_FAILURES } from './attempt-rules.js';

/** Whose failures are counted. */
export interface Suspect {
  kind: 'source' | 'key';
  name: string;
}

/** How many failures there were lately, and the seconds until counting begins anew. */
export interface Failures extends Suspect {
  failures: number;
  secondsLeft: number;
}

/** Whoever has no key that is taken. */
const UNKNOWN: Actor = { id: 'unknown', name: 'unknown' };

/** Sources that one sweep tells the audit trail of. */
const MOST_TOLD = 1_000;

const TIME = `make_interval(secs => ${LOCKOUT_SECONDS})`;

/** The time of a row begins with its first failure, and anew with the one that is too many. In one order: no deadlock. */
const COUNT = `
  INSERT INTO failed_attempts AS known (kind, name, failures, ends_at, untold, untold_since)
  SELECT kind, name, n, clock_timestamp() + ${TIME}, CASE kind WHEN 'source' THEN n ELSE 0 END, clock_timestamp()
  FROM unnest($1::text[], $2::text[], $3::int[]) AS counted (kind, name, n) ORDER BY kind, name
  ON CONFLICT (kind, name) DO UPDATE SET
    failures = CASE WHEN known.ends_at <= clock_timestamp() THEN 0 ELSE known.failures END + excluded.failures,
    ends_at = CASE WHEN known.ends_at <= clock_timestamp()
        OR known.failures < ${MOST_FAILURES} AND known.failures + excluded.failures >= ${MOST_FAILURES}
      THEN excluded.ends_at ELSE known.ends_at END,
    untold = known.untold + excluded.untold,
    untold_since = CASE known.untold WHEN 0 THEN excluded.untold_since ELSE known.untold_since END
  RETURNING kind, name, failures, extract(epoch FROM ends_at - clock_timestamp())::float8 AS "secondsLeft"`;

const DUE = `
  SELECT name, untold FROM failed_attempts
  WHERE untold > 0 AND untold_since <= clock_timestamp() - interval '1 minute'
  LIMIT ${MOST_TOLD} FOR UPDATE SKIP LOCKED`;

/** Failed authentication in the database, which all processes share. */
@Injectable()
export class FailedAttemptsRepository {
  constructor(
    private readonly database: Database,
    private readonly audit: AuditRepository,
  ) {}

  /** Adds failures of any number of suspects, each named once. */
  async count(counted: readonly (Suspect & { times: number })[]): Promise<Failures[]> {
    const columns = [
      counted.map(({ kind }) => kind),
      counted.map(({ name }) => name),
      counted.map((each) => each.times),
    ];
    return (await this.database.pool.query<Failures>({ name: 'failed-attempts', text: COUNT, values: columns })).rows;
  }

  /**
   * Tells the audit trail of what was counted a minute ago or before: one entry for each source, with the number. Rows
   * whose time is over go.
   */
  async tell(): Promise<void> {
    await this.database.transaction(async (tx) => {
      const { rows } = await tx.query<{ name: string; untold: number }>(DUE);
      const names = rows.map(({ name }) => name);
      if (names.length > 0)
        await tx.query(`UPDATE failed_attempts SET untold = 0 WHERE kind = 'source' AND name = ANY ($1)`, [names]);
      await this.audit.append(
        tx,
        rows.map(({ name: source, untold }) => ({
          ...{ by: UNKNOWN, action: 'authentication.failed', subjects: new AuditSubjects(), source },
          ...{ outcome: `${untold} refused`, stored: 'no' },
        })),
      );
      await tx.query('DELETE FROM failed_attempts WHERE untold = 0 AND ends_at <= clock_timestamp()');
    });
  }
}
