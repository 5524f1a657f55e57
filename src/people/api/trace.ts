import type { openBlocks } from '../model/circuit-breaker.js';
import { isCreate, nextStep, type Step } from '../model/next-step.js';
import type { Person } from '../model/person.js';
import { messageFor } from '../model/person-codes.js';
import { resolveChoices } from '../model/resolve-rule.js';
import type { PersonRow } from '../store/person-row.js';
import type { UpcomingPerson } from '../store/upcoming-people.js';
import { whyStopped } from './people-monitoring.js';
import type { NextStepResponse, TracedCallResponse, TraceResponse } from './trace.dto.js';

/**
 * Explains the desired state, the known state and the next step of a person.
 *
 * @param calls newest first
 * @param blocks of the operations that are stopped for everyone
 */
export function traceOf(
  row: PersonRow,
  calls: (Omit<TracedCallResponse, 'at'> & { grantedAt: Date })[],
  blocks: ReturnType<typeof openBlocks>,
): TraceResponse {
  const { externalId, kind, state, person, context } = row;
  const { attempt, checkedAbsentAt, appliedProviders, failures, platformUserId } = person;
  const hasEmail = person.email !== null;
  const providers = context.providers.map((provider) => ({
    externalId: provider.externalId,
    mirrored: provider.platformUserId !== null,
  }));
  // Lists and deletions without an answer are sent again without a check.
  const unsettledCreate =
    attempt && isCreate(attempt) ? { hasEmail: attempt.email !== null, lookUpAt: attempt.lookUpAt } : null;
  const emailClaim = hasEmail ? context.claim : null;
  return {
    externalId,
    kind,
    state,
    wanted: { present: person.wanted, hasEmail, providers },
    known: { platformUserId, unsettledCreate, checkedAbsentAt, appliedProviders, emailClaim, failures },
    nextStep: unlessStopped(explain(nextStep(person, context), person), blocks),
    choices: resolveChoices(state, person, context),
    history: calls.map(({ grantedAt: at, operation, lane, status, outcome, durationMs }) => ({
      ...{ at, operation, lane, status, outcome, durationMs },
    })),
  };
}

/** Explains the state of a person that a running import has not started yet. */
export function traceOfUpcoming({ kind, externalId, profile, providers }: UpcomingPerson): TraceResponse {
  return {
    externalId,
    kind,
    state: 'pending',
    wanted: {
      present: true,
      hasEmail: profile.email !== null,
      providers: providers.map((provider) => ({ externalId: provider, mirrored: false })),
    },
    known: {
      platformUserId: null,
      unsettledCreate: null,
      checkedAbsentAt: null,
      appliedProviders: null,
      emailClaim: null,
      failures: 0,
    },
    nextStep: { what: 'none', why: messageFor('waits-in-import'), notBefore: null },
    choices: [],
    history: [],
  };
}

const CHECKS = {
  wanted: 'The platform may already have a user with this email.',
  attempted: 'A create got no answer. A lookup by email shows whether it took effect.',
  any: 'A lookup of any known email shows whether the platform answers at this URL, because the next call depends on it.',
};

/** Adds why the operation of a step is stopped for everyone, and when it is tried again. */
function unlessStopped(step: NextStepResponse, blocks: ReturnType<typeof openBlocks>): NextStepResponse {
  const block = blocks.find(({ operation }) => operation === step.what);
  if (!block) return step;
  const probeAt = new Date(block.until);
  const notBefore = step.notBefore && step.notBefore > probeAt ? step.notBefore : probeAt;
  return { ...step, why: `${step.why} ${whyStopped(block)}`, notBefore };
}

function explain(step: Step, person: Person): NextStepResponse {
  if (step.do === 'claim-email')
    return { what: 'claim', why: 'No other person may use the email before it is looked up.', notBefore: null };
  if (step.do === 'rest') {
    const why = step.code ? messageFor(step.code) : 'The platform is up to date.';
    return { what: 'none', why, notBefore: step.until };
  }
  const why = {
    checkUser: CHECKS[step.subject ?? 'wanted'],
    createProvider: 'The platform does not know this email.',
    createClient:
      person.email === null ? 'No lookup is possible without an email.' : 'The platform does not know this email.',
    setClientProviders: 'The list on the platform is outdated or unknown.',
    deleteUser: 'The EHR deleted this person.',
  }[step.operation];
  return { what: step.operation, why, notBefore: step.notBefore };
}
