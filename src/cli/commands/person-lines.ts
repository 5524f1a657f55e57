import type { PersonResponse } from '../../people/model/person-view.js';
import type { Trace } from '../../people/read/trace.service.js';
import { table } from '../output/print.js';

/** How one person stands, without names. */
export function personLines({ kind, externalId, platformUserId, providers, sync }: PersonResponse): string {
  const { notPushable, unknownThere, error } = sync;
  return lines(
    `${kind} ${externalId}: ${sync.state}${sync.step ? `, next: ${sync.step}` : ''}`,
    platformUserId && `  user on the platform: ${platformUserId}`,
    providers && `  providers: ${providers.join(', ')}`,
    notPushable.length > 0 &&
      `  changed here, and the platform has no operation to change it there: ${notPushable.join(', ')}`,
    unknownThere.length > 0 &&
      `  not known what the platform holds, since the user was not made here: ${unknownThere.join(', ')}`,
    error && `  ${error.code}: ${error.message}`,
  );
}

/** What is wanted, what is known, what comes next and why, and the calls so far. */
export function traceLines({ kind, externalId, state, wanted, known, nextStep, history }: Trace): string {
  const providers = wanted.providers.map((one) => one.externalId + (one.mirrored ? '' : ' (not mirrored yet)'));
  const calls = history.map(({ at, operation, lane, status, outcome, durationMs }) => {
    return { 'call at': at, operation, lane, status, outcome, ms: durationMs };
  });
  return lines(
    `${kind} ${externalId}: ${state}`,
    `wanted    ${wanted.present ? 'to be on the platform' : 'to be gone'}, ${wanted.hasEmail ? 'with' : 'without'} an email${
      providers.length > 0 ? `, providers ${providers.join(', ')}` : ''
    }`,
    `known     ${known.platformUserId ? `user ${known.platformUserId}` : 'no user of the platform'}${
      known.appliedProviders ? `, ${known.appliedProviders.length} providers applied` : ''
    }`,
    known.unsettledCreate && `          a create without an answer, looked up at ${known.unsettledCreate.lookUpAt}`,
    known.emailClaim && `          the email is ${known.emailClaim === 'held' ? "this person's" : known.emailClaim}`,
    `next      ${nextStep.what}${nextStep.notBefore ? `, not before ${nextStep.notBefore}` : ''}: ${nextStep.why}`,
    calls.length > 0 ? `\n${table(calls)}` : 'calls     none yet',
  );
}

/** The lines that apply. */
function lines(...texts: (string | false | null | undefined)[]): string {
  return texts.filter((text) => text).join('\n');
}
