import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { isCreate, nextStep, type Step } from '../model/next-step.js';
import type { DecisionContext, Person } from '../model/person.js';
import { messageFor } from '../model/person-codes.js';
import type { PersonKey } from '../model/profile.js';
import { PeopleRepository } from '../store/people.repository.js';

/** One call in a person's history. */
interface TracedCall {
  at: string;
  operation: string;
  lane: string;
  status: number | null;
  outcome: string | null;
  durationMs: number | null;
}

/** Why a person stands where it stands; nothing is sent to find out. */
export interface Trace {
  externalId: string;
  kind: string;
  state: string;
  wanted: { present: boolean; hasEmail: boolean; providers: { externalId: string; mirrored: boolean }[] };
  known: {
    platformUserId: string | null;
    unsettledCreate: { hasEmail: boolean; lookUpAt: string } | null;
    checkedAbsentAt: string | null;
    appliedProviders: string[] | null;
    emailClaim: DecisionContext['claim'] | null;
    failures: number;
  };
  nextStep: { what: string; why: string; notBefore: string | null };
  history: TracedCall[];
}

/** Shows of one person what is wanted, what is known, what comes next and why, and the history of its calls. */
@Injectable()
export class TraceService {
  constructor(
    private readonly database: Database,
    private readonly people: PeopleRepository,
  ) {}

  /** @throws {Problem} 404 when the EHR never named this person */
  async trace(key: PersonKey): Promise<Trace> {
    const row = await this.people.find(this.database.pool, key);
    if (!row) {
      const detail = `No ${key.kind} with this external id is known; check the id and the kind.`;
      throw new Problem(404, `${key.kind}-not-found`, detail);
    }
    const { person, context } = row;
    const { attempt } = person;
    const { rows: history } = await this.database.pool.query<TracedCall>(
      `SELECT granted_at AS at, operation, lane, status, outcome, duration_ms AS "durationMs"
       FROM platform_calls WHERE person_id = $1 ORDER BY id DESC LIMIT 100`,
      [row.id],
    );
    const providers = context.providers.map(({ externalId, platformUserId }) => ({
      externalId,
      mirrored: platformUserId !== null,
    }));
    return {
      externalId: row.externalId,
      kind: row.kind,
      state: row.state,
      wanted: { present: person.wanted, hasEmail: person.email !== null, providers },
      known: {
        platformUserId: person.platformUserId,
        // A list or a deletion may be open, too; those are sent again without a check.
        unsettledCreate:
          attempt && isCreate(attempt)
            ? { hasEmail: attempt.email !== null, lookUpAt: attempt.lookUpAt.toISOString() }
            : null,
        checkedAbsentAt: person.checkedAbsentAt?.toISOString() ?? null,
        appliedProviders: person.appliedProviders,
        emailClaim: person.email === null ? null : context.claim,
        failures: person.failures,
      },
      nextStep: explain(nextStep(person, context), person),
      history,
    };
  }
}

const CHECKS = {
  wanted: 'Nobody is created before a check.',
  attempted: 'A create got no answer; the email shows whether it was done.',
  primary:
    'The platform gave no answer lately; the provider’s email is asked for first, since a create without an email must not be lost.',
};

function explain(step: Step, person: Person): Trace['nextStep'] {
  if (step.do === 'claim')
    return { what: 'claim', why: 'The email must be this person’s alone before it is looked up.', notBefore: null };
  if (step.do === 'rest') {
    const why = step.code ? messageFor(step.code) : 'What is known is what is wanted.';
    return { what: 'none', why, notBefore: step.until?.toISOString() ?? null };
  }
  const why = {
    checkUser: CHECKS[step.subject ?? 'wanted'],
    createProvider: 'The platform does not know this email.',
    createClient:
      person.email === null ? 'Without an email there is nothing to check.' : 'The platform does not know this email.',
    setClientProviders: 'The list on the platform differs from the wanted one, or is not known.',
    deleteUser: 'The person is no longer wanted.',
  }[step.operation];
  return { what: step.operation, why, notBefore: step.notBefore?.toISOString() ?? null };
}
