import { isCreate, nextStep, type Step } from '../model/next-step.js';
import type { Person } from '../model/person.js';
import { messageFor } from '../model/person-codes.js';
import { resolveChoices } from '../model/resolve-rule.js';
import type { PersonRow } from '../store/person-row.js';
import type { NextStepResponse, TracedCallResponse, TraceResponse } from './trace.dto.js';

/** Shows of a person what is wanted, what is known, what comes next and why. @param calls the newest first */
export function traceOf(
  row: PersonRow,
  calls: (Omit<TracedCallResponse, 'at'> & { grantedAt: Date })[],
): TraceResponse {
  const { externalId, kind, state, person, context } = row;
  const { attempt, checkedAbsentAt, appliedProviders, failures, platformUserId } = person;
  const hasEmail = person.email !== null;
  const providers = context.providers.map((named) => ({
    externalId: named.externalId,
    mirrored: named.platformUserId !== null,
  }));
  // A list or a deletion may be open, too; those are sent again without a check.
  const unsettledCreate =
    attempt && isCreate(attempt) ? { hasEmail: attempt.email !== null, lookUpAt: attempt.lookUpAt } : null;
  const emailClaim = hasEmail ? context.claim : null;
  return {
    externalId,
    kind,
    state,
    wanted: { present: person.wanted, hasEmail, providers },
    known: { platformUserId, unsettledCreate, checkedAbsentAt, appliedProviders, emailClaim, failures },
    nextStep: explain(nextStep(person, context), person),
    choices: resolveChoices(state, person),
    history: calls.map(({ grantedAt: at, operation, lane, status, outcome, durationMs }) => ({
      ...{ at, operation, lane, status, outcome, durationMs },
    })),
  };
}

const CHECKS = {
  wanted: 'Nobody is created before a check.',
  attempted: 'A create got no answer; the email shows whether it was done.',
  primary:
    'The platform gave no answer lately; the provider’s email is asked for first, since a create without an email must not be lost.',
};

function explain(step: Step, person: Person): NextStepResponse {
  if (step.do === 'claim-email')
    return { what: 'claim', why: 'The email must be this person’s alone before it is looked up.', notBefore: null };
  if (step.do === 'rest') {
    const why = step.code ? messageFor(step.code) : 'What is known is what is wanted.';
    return { what: 'none', why, notBefore: step.until };
  }
  const why = {
    checkUser: CHECKS[step.subject ?? 'wanted'],
    createProvider: 'The platform does not know this email.',
    createClient:
      person.email === null ? 'Without an email there is nothing to check.' : 'The platform does not know this email.',
    setClientProviders: 'The list on the platform differs from the wanted one, or is not known.',
    deleteUser: 'The person is no longer wanted.',
  }[step.operation];
  return { what: step.operation, why, notBefore: step.notBefore };
}
