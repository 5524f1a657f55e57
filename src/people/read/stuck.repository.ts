import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import type { PersonKind, PersonState } from '../model/person.js';

/** A person who has been in one state for longer than it should take. */
export interface StuckPerson {
  kind: PersonKind;
  externalId: string;
  state: PersonState;
  code: string | null;
  /** Since when, as ISO 8601. */
  since: string;
  ageSeconds: number;
}

/** People of one kind in one state, and how many of them are stuck. */
export interface PeopleCount {
  kind: PersonKind;
  state: PersonState;
  people: number;
  stuck: number;
}

/** Seconds after which a state is worth a look: work in progress after a quarter of an hour, a question after a day. */
const PATIENCE: [PersonState, number][] = [
  ['pending', 900],
  ['waiting', 900],
  ['deleting', 900],
  ['failed', 86_400],
  ['needs-review', 86_400],
];

/** The kinds and states are named so that the index of both finds the few people who have not got on. */
const STUCK = `FROM people p JOIN unnest($1::person_state[], $2::int[]) AS patience(state, seconds) ON patience.state = p.state
  WHERE p.kind IN ('provider', 'client') AND p.state = ANY ($1::person_state[])
    AND p.updated_at < clock_timestamp() - patience.seconds * interval '1 second' AND p.paused_by_import IS NULL`;

/** People who do not get on: counted for the metrics, listed for whoever looks into it. */
@Injectable()
export class StuckRepository {
  private readonly patience = [PATIENCE.map(([state]) => state), PATIENCE.map(([, seconds]) => seconds)];

  constructor(private readonly database: Database) {}

  /** How many people of each kind are in each state, and how many of them are stuck. */
  async count(): Promise<PeopleCount[]> {
    const { rows } = await this.database.pool.query<PeopleCount>(
      `SELECT p.kind, p.state, count(*)::int AS people,
         count(*) FILTER (WHERE p.paused_by_import IS NULL AND p.updated_at < clock_timestamp() - patience.seconds * interval '1 second')::int AS stuck
       FROM people p LEFT JOIN unnest($1::person_state[], $2::int[]) AS patience(state, seconds) ON patience.state = p.state
       GROUP BY p.kind, p.state`,
      this.patience,
    );
    return rows;
  }

  /** The stuck people, the oldest first. @param after the moment and id of the last one seen */
  async list(limit: number, after?: { since: string; id: string }): Promise<(StuckPerson & { id: string })[]> {
    const { rows } = await this.database.pool.query<StuckPerson & { id: string }>(
      `SELECT p.id, p.kind, p.external_id AS "externalId", p.state, p.error_code AS code,
         to_char(p.updated_at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS since,
         extract(epoch FROM clock_timestamp() - p.updated_at)::int AS "ageSeconds"
       ${STUCK} AND ($4::timestamptz IS NULL OR (p.updated_at, p.id) > ($4, $5::uuid))
       ORDER BY p.updated_at, p.id LIMIT $3`,
      [...this.patience, limit, after?.since ?? null, after?.id ?? null],
    );
    return rows;
  }
}
