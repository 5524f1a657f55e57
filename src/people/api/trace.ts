import { USER_MANAGEMENT } from '../../platform/pauses/apis.js';
import type { Pauses } from '../../platform/pauses/pause-row.js';
import { dueAtOf, nextStep, type Step } from '../rules/next-step.js';
import { isCreate, type Person } from '../rules/person.js';
import { messageFor } from '../rules/person-codes.js';
import { resolveChoices } from '../rules/resolve-rule.js';
import type { PersonRow } from '../store/person-row.js';
import type { NextStepResponse, TracedCallResponse, TraceResponse } from './trace.dto.js';

/**
 * Explains the desired state, the known state and the next step of a person.
 *
 * @param calls newest first
 * @param pauses of user management and of its operations
 */
export function traceOf(row: PersonRow, calls: readonly TracedCallResponse[], pauses: Pauses): TraceResponse {
  const { externalId, kind, state, person, context } = row;
  const { unsettled, checkedAbsentAt, appliedProviders, failures, platformUserId } = person;
  const hasEmail = person.email !== null;
  const providers = context.providers.map((each) => {
    return { externalId: each.externalId, mirrored: each.platformUserId !== null };
  });
  // Lists and deletions without an answer are sent again without a check.
  const unsettledCreate =
    unsettled && isCreate(unsettled) ? { hasEmail: unsettled.email !== null, lookUpAt: unsettled.lookUpAt } : null;
  return {
    externalId,
    kind,
    state,
    wanted: { present: person.wanted, hasEmail, providers },
    known: {
      ...{ platformUserId, unsettledCreate, checkedAbsentAt, appliedProviders, failures },
      otherPlatformUserIds: person.others.map(({ id }) => id),
      emailClaim: hasEmail ? context.claim : null,
    },
    nextStep: unlessPaused(explain(nextStep(person, context), person), pauses, context.now),
    choices: resolveChoices(state, person, context),
    history: calls.map(({ at, operation, status, outcome, durationMs }) => ({
      ...{ at, operation, status, outcome, durationMs },
    })),
  };
}

const CHECKS = {
  wanted: 'The platform may already have a user with this email.',
  attempted: 'A create got no answer. A lookup by email shows whether it took effect.',
  any: 'A lookup of any known email shows whether the platform answers at this URL, because the next call depends on it.',
};

/** Adds that calls pause, and until when. */
function unlessPaused(step: NextStepResponse, pauses: Pauses, now: Date): NextStepResponse {
  const ends = [pauses.get(USER_MANAGEMENT), pauses.get(step.what)]
    .flatMap((pause) => [pause?.limitedUntil, pause?.pausedUntil])
    .filter((end) => end && end > now);
  if (ends.length === 0) return step;
  const notBefore = new Date(Math.max(...[...ends, step.notBefore].map(Number)));
  return { ...step, why: `${step.why} Calls pause for everyone: see the health of the platform.`, notBefore };
}

function explain(step: Step, person: Person): NextStepResponse {
  if (person.call)
    return { what: 'none', why: 'A call is in flight, or its process has died.', notBefore: person.call.lookUpAt };
  if (step.do === 'rest') {
    const why = step.code ? messageFor(step.code) : 'The platform is up to date.';
    return { what: 'none', why, notBefore: null };
  }
  const why = {
    checkUser: CHECKS[step.subject ?? 'wanted'],
    createProvider: 'The platform does not know this email.',
    createClient:
      person.email === null ? 'No lookup is possible without an email.' : 'The platform does not know this email.',
    setClientProviders: 'The list on the platform is outdated or unknown.',
    deleteUser: 'The EHR deleted this person.',
  }[step.operation];
  return { what: step.operation, why, notBefore: dueAtOf(person, step) };
}
