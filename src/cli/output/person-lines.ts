import type { PersonResponse } from '../../people/model/person-view.js';
import type { Trace } from '../../people/read/trace.service.js';
import { table } from './table.js';

/** A person as a row of a table, without names. */
export function personRow(person: PersonResponse): unknown[] {
  const { kind, externalId, sync, platformUserId, providers } = person;
  return [kind, externalId, sync.state, sync.error?.code, platformUserId, providers?.join('|')];
}

/** How one person stands, without names. */
export function personLines({ kind, externalId, platformUserId, providers, sync }: PersonResponse): string {
  const lines = [
    `${kind} ${externalId}: ${sync.state}${sync.step ? `, next: ${sync.step}` : ''}`,
    ...(platformUserId ? [`  user on the platform: ${platformUserId}`] : []),
    ...(providers ? [`  providers: ${providers.join(', ')}`] : []),
    ...(sync.notPushable.length > 0
      ? [`  changed here, and the platform has no operation to change it there: ${sync.notPushable.join(', ')}`]
      : []),
    ...(sync.unknownThere.length > 0
      ? [`  not known what the platform holds, since the user was not made here: ${sync.unknownThere.join(', ')}`]
      : []),
    ...(sync.error ? [`  ${sync.error.code}: ${sync.error.message}`] : []),
  ];
  return lines.join('\n');
}

/** What is wanted, what is known, what comes next and why, and the calls so far. */
export function traceLines({ kind, externalId, state, wanted, known, nextStep, history }: Trace): string {
  const providers = wanted.providers.map(
    (provider) => provider.externalId + (provider.mirrored ? '' : ' (not mirrored yet)'),
  );
  const lines = [
    `${kind} ${externalId}: ${state}`,
    `wanted    ${wanted.present ? 'to be on the platform' : 'to be gone'}, ${wanted.hasEmail ? 'with' : 'without'} an email${
      providers.length > 0 ? `, providers ${providers.join(', ')}` : ''
    }`,
    `known     ${known.platformUserId ? `user ${known.platformUserId}` : 'no user of the platform'}${
      known.appliedProviders ? `, ${known.appliedProviders.length} providers applied` : ''
    }`,
    ...(known.unsettledCreate
      ? [`          a create without an answer, looked up at ${known.unsettledCreate.lookUpAt}`]
      : []),
    ...(known.emailClaim
      ? [`          the email is ${known.emailClaim === 'held' ? "this person's" : known.emailClaim}`]
      : []),
    `next      ${nextStep.what}${nextStep.notBefore ? `, not before ${nextStep.notBefore}` : ''}: ${nextStep.why}`,
  ];
  if (history.length === 0) return [...lines, 'calls     none yet'].join('\n');
  const calls = history.map((call) => [call.at, call.operation, call.lane, call.status, call.outcome, call.durationMs]);
  return [...lines, '', table(['call at', 'operation', 'lane', 'status', 'outcome', 'ms'], calls)].join('\n');
}
