import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import type { ShownState } from '../model/session-row.js';
import { SessionReader } from '../read/session-reader.js';
import { requestChoices, VERDICTS, verdictOf, whyUnknown } from './request-choices.js';
import type { RequestEvidenceResponse } from './request-evidence.dto.js';
import type { RequestRow } from './request-row.js';

/** Sessions that are shown at most. */
const MOST_FOUND = 20;

/** Sessions of the platform that events named for the request $1, and the newest others with its appointment. */
const FOUND = `
  SELECT s.session_id AS "sessionId", s.id AS session, s.state, s.provider_user_id AS "providerUserId",
    s.created_at AS "knownSince", EXISTS (SELECT 1 FROM session_requests r WHERE r.session = s.id) AS "isHeld"
  FROM (SELECT unnest($2::text[]) AS id UNION SELECT * FROM (SELECT session_id FROM sessions
    WHERE partner_appointment_id = $3 AND id <> $1 AND session_id IS NOT NULL
    ORDER BY created_at DESC LIMIT ${MOST_FOUND}) AS near) AS named
  JOIN sessions s ON s.session_id = named.id
  ORDER BY named.id = ANY ($2) DESC, s.created_at DESC, s.id LIMIT ${MOST_FOUND}`;

interface FoundRow {
  sessionId: string;
  session: string;
  state: ShownState;
  providerUserId: string | null;
  knownSince: Date;
  isHeld: boolean;
}

/** What is known of the EHR's request for a session, for whoever has to say what became of it. */
@Injectable()
export class RequestEvidence {
  constructor(
    private readonly database: Database,
    private readonly reader: SessionReader,
  ) {}

  /**
   * @param idOrAlias of the session, ours or the platform's
   * @throws {Problem} 404 `unknown-session` or `not-requested`; 503 `data-unreadable`
   */
  async show(idOrAlias: string): Promise<RequestEvidenceResponse> {
    const { id } = await this.reader.find(idOrAlias);
    const { rows } = await this.database.pool.query<RequestRow>('SELECT * FROM session_requests WHERE session = $1', [
      id,
    ]);
    const [row] = rows;
    if (!row) {
      const detail = 'This session was not asked for here: the platform told of it, so there is no request to resolve.';
      throw new Problem(404, 'not-requested', detail);
    }
    const request = { providerUserId: row.provider_user_id, requestedAt: row.requested_at };
    const candidates = await this.candidates(row);
    // Of whom they are is disclosed with them.
    for (const { session } of candidates) await this.reader.find(session);
    const found = candidates.map(({ providerUserId, isHeld, ...candidate }) => {
      const verdict = verdictOf({ providerUserId, isHeld, knownSince: candidate.knownSince }, request);
      return { ...candidate, verdict, why: VERDICTS[verdict] };
    });
    const fitting = found.filter(({ verdict }) => verdict === 'fits').length;
    return {
      state: row.state,
      inputKind: row.input_kind,
      requestedAt: row.requested_at,
      attemptedAt: row.attempted_at,
      settledAt: row.settled_at,
      failures: row.failures,
      fault: row.fault,
      earlierUnknown: row.earlier_unknown,
      lookedFor: row.correlation_id,
      why: row.state === 'Unknown' ? whyUnknown(fitting, row.earlier_unknown) : null,
      found,
      choices: requestChoices(row.state, row.lease_owner !== null),
    };
  }

  /** None once the request has ended. */
  private async candidates({ session, state, evidence, correlation_id }: RequestRow): Promise<FoundRow[]> {
    if (state !== 'Requested' && state !== 'Unknown') return [];
    return (await this.database.pool.query<FoundRow>(FOUND, [session, evidence, correlation_id])).rows;
  }
}
