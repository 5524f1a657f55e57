import { Argument, type Command } from 'commander';
import type { TraceResponse } from '../../people/api/trace.dto.js';
import type { SessionResponse } from '../../sessions/model/session-view.js';
import type { TimelineEntryResponse, TimelinePageResponse } from '../../sessions/read/timeline.dto.js';
import type { DeliveryResponse } from '../../webhooks/admin/deliveries.dto.js';
import { inSentence, labelOf } from '../../words/words.js';
import type { Api } from '../api/api.js';
import { examples } from '../output/help.js';
import { lines, printAnswer, table } from '../output/print.js';

/** Reads one person, session or delivery, and prints its trace. */
const TRACES: Record<string, (api: Api, id: string, json?: boolean) => Promise<void>> = {
  provider: (api, id, json) => tracePerson(api, 'provider', id, json),
  client: (api, id, json) => tracePerson(api, 'client', id, json),
  session: traceSession,
  delivery: traceDelivery,
};

/** `notebridge trace`. */
export function addTraceCommand(program: Command, api: Api): void {
  program
    .command('trace')
    .description('show the history of one person, session or delivery, what comes next and why; sends nothing')
    .addArgument(new Argument('<kind>', 'the kind of thing to trace').choices(Object.keys(TRACES)))
    .argument('<id>', "of a person, the EHR's id; of a session, its id here or on the platform; of a delivery, its id")
    .option('--json', "print the service's answer")
    .addHelpText('after', examples('trace client C-1', 'trace delivery 42'))
    .action((kind: string, id: string, { json }: { json?: boolean }) => TRACES[kind]?.(api, id, json));
}

async function tracePerson(api: Api, kind: string, externalId: string, json?: boolean): Promise<void> {
  printAnswer(await api.post<TraceResponse>('/v1/people/trace', { kind, externalId }), json, personLines);
}

async function traceSession(api: Api, id: string, json?: boolean): Promise<void> {
  const path = `/v1/sessions/${encodeURIComponent(id)}`;
  const session = await api.get<SessionResponse>(path);
  const { items: timeline } = await api.get<TimelinePageResponse>(`${path}/timeline`);
  printAnswer({ session, timeline }, json, sessionLines);
}

async function traceDelivery(api: Api, id: string, json?: boolean): Promise<void> {
  const path = `/v1/webhook-deliveries/${encodeURIComponent(id)}`;
  printAnswer(await api.get<DeliveryResponse>(path), json, deliveryLines);
}

/** Desired and observed state, what comes next and why, and the calls so far. */
function personLines({ kind, externalId, state, wanted, known, nextStep, choices, history }: TraceResponse): string {
  const ids = wanted.providers.map((one) => one.externalId + (one.mirrored ? '' : ' (not synced yet)')).join(', ');
  const calls = history.map(({ at, operation, status, outcome, durationMs }) => {
    return { 'call at': at, operation, status, outcome, ms: durationMs };
  });
  const others = known.otherPlatformUserIds.map((id) => ` and ${id}`).join('');
  const user = known.platformUserId ? `user ${known.platformUserId}${others}` : 'no platform user';
  const applied = known.appliedProviders ? `, ${known.appliedProviders.length} providers applied` : '';
  const { unsettledCreate, emailClaim } = known;
  return lines(
    `${kind} ${externalId}: ${inSentence(labelOf('personState', state))}`,
    `desired   ${wanted.present ? 'present' : 'deleted'}, ${wanted.hasEmail ? 'with' : 'without'} an email${
      ids === '' ? '' : `, providers ${ids}`
    }`,
    `observed  ${user}${applied}`,
    unsettledCreate && `          a create without an answer; next lookup at ${unsettledCreate.lookUpAt}`,
    emailClaim && `          the email is ${emailClaim === 'held' ? "this person's" : emailClaim}`,
    nextLine(nextStep),
    ...choices.map(({ action, does }) => `choice    resolve ${kind} ${externalId} ${action}: ${does}`),
    calls.length > 0 ? `\n${table(calls)}` : 'calls     none yet',
  );
}

function sessionLines({ session, timeline }: { session: SessionResponse; timeline: TimelineEntryResponse[] }): string {
  const { id, sessionId, state, stateFrom, error, notesRevision, incomplete, lastEventAt, fetchedAt, goneAt } = session;
  const source = stateFrom && ` (from ${stateFrom === 'events' ? 'its events' : "the platform's answer"})`;
  return lines(
    `session ${id}: ${inSentence(labelOf('sessionState', state))}${source ?? ''}`,
    error && `          ${error.code}: ${error.message}`,
    `observed  ${sessionId ? `session ${sessionId} on the platform` : 'no session on the platform'}, notes revision ${notesRevision}`,
    `          last event ${lastEventAt ?? 'none'}, last fetched ${fetchedAt ?? 'never'}`,
    incomplete.length > 0 && `          unreadable parts of the last answer: ${incomplete.join(', ')}`,
    goneAt && `          gone from the platform since ${goneAt}`,
    nextLine(session.nextStep),
    ...session.choices.map(({ action, does }) => `choice    sessions resolve ${id} ${action}: ${does}`),
    timeline.length > 0 ? `\n${table(timeline.map(timelineRow))}` : 'timeline  empty',
  );
}

function timelineRow({ at, kind, event, request, notes }: TimelineEntryResponse) {
  const what =
    event?.eventType ??
    (request && labelOf('requestState', request.state)) ??
    `document ${notes?.documentId} revision ${notes?.revision}`;
  return {
    at,
    kind,
    what,
    delivery: event?.deliveryId,
    state: event && labelOf('deliveryState', event.state),
    reason: event?.reason,
  };
}

function deliveryLines(delivery: DeliveryResponse): string {
  const { id, state, eventType, subject, sentAt, receivedAt, processedAt, attempts, repeats, error, dueAt } = delivery;
  return lines(
    `delivery ${id}: ${inSentence(labelOf('deliveryState', state))}`,
    `content   ${eventType ?? 'unknown event type'}${subject ? `, about ${subject} on the platform` : ''}`,
    `          sent ${sentAt}, received ${receivedAt}, repeated ${repeats} times`,
    `          failed attempts ${attempts}${processedAt ? `, processed ${processedAt}` : ''}`,
    error && `          ${error.code}: ${error.message}`,
    dueAt ? `next      processing, not before ${dueAt}` : `next      none${state === 'dead' ? ': replay it' : ''}`,
  );
}

const nextLine = ({ what, why, notBefore }: TraceResponse['nextStep']): string =>
  `next      ${what}${notBefore ? `, not before ${notBefore}` : ''}: ${why}`;
