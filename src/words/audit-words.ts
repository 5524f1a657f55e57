import { labels } from './word.js';

/** An action in words: its verb in the past, its verb after "tried to", and what it was done to. */
type Sentence = readonly [past: string, infinitive: string, rest: string];

const viewed = (rest: string): Sentence => ['viewed', 'view', rest];
const listed = (rest: string): Sentence => ['listed', 'list', rest];

/** The actions of requests, which are their routes. */
const REQUESTS: Record<string, Sentence> = {
  'GET /v1/api-keys': listed('the API keys'),
  'POST /v1/api-keys': ['created', 'create', 'an API key'],
  'POST /v1/api-keys/:id/rotate': ['rotated', 'rotate', 'an API key'],
  'DELETE /v1/api-keys/:id': ['revoked', 'revoke', 'an API key'],
  'GET /v1/audit': ['searched', 'search', 'the audit log'],
  'POST /v1/browser-session': ['signed in', 'sign in', 'with a key'],
  'GET /v1/sign-in': ['began', 'begin', 'to sign in through the identity provider'],
  'GET /v1/sign-in/callback': ['signed in', 'sign in', 'through the identity provider'],
  'DELETE /v1/browser-session': ['signed out', 'sign out', 'of a browser'],
  'POST /v1/browser-session/step-up': ['confirmed', 'confirm', 'the key of a browser'],
  'GET /v1/browser-sessions': listed('the signed-in browsers'),
  'DELETE /v1/browser-sessions/:id': ['ended', 'end', 'the session of a browser'],
  'GET /v1/compliance/jobs': listed('compliance jobs'),
  'POST /v1/compliance/jobs': ['submitted', 'submit', 'documents to a compliance check'],
  'POST /v1/compliance/upload-url': ['requested', 'request', 'an upload URL for a document'],
  'GET /v1/compliance/jobs/:id': viewed('a compliance job'),
  'POST /v1/compliance/jobs/:id/resolve': ['resolved', 'resolve', 'a compliance job'],
  'GET /v1/events': ['read', 'read', 'the event feed'],
  'GET /fhir/DocumentReference': ['searched', 'search', 'notes through FHIR'],
  'POST /fhir/DocumentReference/_search': ['searched', 'search', 'notes through FHIR'],
  'GET /fhir/DocumentReference/:id': viewed('a note through FHIR'),
  'GET /v1/imports': listed('imports'),
  'POST /v1/imports': ['uploaded', 'upload', 'an import'],
  'GET /v1/imports/:id': viewed('an import'),
  'GET /v1/imports/:id/rows': viewed('the rows of an import'),
  'PATCH /v1/imports/:id/rows': ['corrected', 'correct', 'rows of an import'],
  'GET /v1/imports/:id/rejected.csv': ['downloaded', 'download', 'the rejected rows of an import'],
  'GET /v1/imports/:id/cancellation': ['previewed', 'preview', 'the cancel of an import'],
  'POST /v1/imports/:id/apply': ['applied', 'apply', 'an import'],
  'POST /v1/imports/:id/pause': ['paused', 'pause', 'an import'],
  'POST /v1/imports/:id/resume': ['resumed', 'resume', 'an import'],
  'POST /v1/imports/:id/cancel': ['cancelled', 'cancel', 'an import'],
  'POST /v1/imports/:id/retry': ['retried', 'retry', 'an import'],
  'POST /v1/imports/:id/mapping': ['chose', 'choose', 'the columns of an import'],
  'PUT /v1/sending': ['held or released', 'hold or release', 'calls to the platform'],
  'GET /v1/providers': listed('providers'),
  'GET /v1/providers/:externalId': viewed('a provider'),
  'PUT /v1/providers/:externalId': ['created or updated', 'create or update', 'a provider'],
  'DELETE /v1/providers/:externalId': ['deleted', 'delete', 'a provider'],
  'POST /v1/providers/:externalId/resolve': ['resolved', 'resolve', 'a provider'],
  'POST /v1/providers/:externalId/rename': ['changed', 'change', 'the id of a provider'],
  'GET /v1/clients': listed('clients'),
  'GET /v1/clients/:externalId': viewed('a client'),
  'PUT /v1/clients/:externalId': ['created or updated', 'create or update', 'a client'],
  'DELETE /v1/clients/:externalId': ['deleted', 'delete', 'a client'],
  'PUT /v1/clients/:externalId/providers': ['changed', 'change', 'the providers of a client'],
  'POST /v1/clients/:externalId/resolve': ['resolved', 'resolve', 'a client'],
  'POST /v1/clients/:externalId/rename': ['changed', 'change', 'the id of a client'],
  'POST /v1/clients/:externalId/merge': ['merged', 'merge', 'two clients'],
  'GET /v1/clients/:externalId/export': ['exported', 'export', 'everything about a client'],
  'GET /v1/clients/:externalId/disclosures': viewed('the disclosures of a client'),
  'PUT /v1/clients/:externalId/legal-hold': ['set', 'set', 'a legal hold'],
  'DELETE /v1/clients/:externalId/legal-hold': ['released', 'release', 'a legal hold'],
  'GET /v1/people/unknown-to-ehr': listed('platform users unknown to the EHR'),
  'GET /v1/people/platform-users/:platformUserId': viewed('a platform user'),
  'POST /v1/people/search': ['searched', 'search', 'people'],
  'POST /v1/people/names': ['read', 'read', 'the names of people'],
  'POST /v1/people/resolve': ['resolved', 'resolve', 'a selection of people'],
  'POST /v1/people/retry': ['retried', 'retry', 'a selection of people'],
  'POST /v1/people/trace': ['traced', 'trace', 'a person'],
  'GET /v1/people.csv': ['exported', 'export', 'all people'],
  'POST /v1/recorder/launches': ['opened', 'open', 'the recorder'],
  'POST /v1/recorder/recoveries': ['opened', 'open', 'the recovery of interrupted uploads'],
  'POST /v1/recordings': ['uploaded', 'upload', 'a recording'],
  'POST /v1/recordings/upload-url': ['requested', 'request', 'an upload URL for a recording'],
  'POST /v1/search': ['searched', 'search', 'by id or email'],
  'GET /v1/sessions': listed('sessions'),
  'POST /v1/sessions': ['requested', 'request', 'a session'],
  'POST /v1/sessions/refreshes': ['refreshed', 'refresh', 'sessions'],
  'GET /v1/sessions/:id': viewed('a session'),
  'PATCH /v1/sessions/:id': ['changed', 'change', 'a session'],
  'GET /v1/sessions/:id/timeline': viewed('the timeline of a session'),
  'PUT /v1/sessions/:id/note-templates': ['changed', 'change', 'the note templates of a session'],
  'POST /v1/sessions/:id/resolve': ['resolved', 'resolve', 'a session'],
  'GET /v1/sessions/:id/notes': viewed('the notes of a session'),
  'GET /v1/sessions/:id/notes/:documentId/revisions': viewed('the revisions of a note'),
  'GET /v1/sessions/:id/transcript': viewed('the transcript of a session'),
  'GET /v1/sessions/:id/insights': viewed('the insights of a session'),
  'GET /v1/sessions/:id/recording-url': ['requested', 'request', 'the recording of a session'],
  'GET /v1/processing-sessions/:processingId': viewed('a processing session'),
  'GET /v1/subscriptions/:id': viewed('a subscription'),
  'GET /v1/subscriptions/:id/attempts': viewed('the last attempts of a subscription'),
  'POST /v1/subscriptions': ['created', 'create', 'a subscription'],
  'PATCH /v1/subscriptions/:id': ['changed', 'change', 'a subscription'],
  'DELETE /v1/subscriptions/:id': ['deleted', 'delete', 'a subscription'],
  'POST /v1/subscriptions/:id/rotate-secret': ['rotated', 'rotate', 'the secret of a subscription'],
  'POST /v1/subscriptions/:id/test': ['tested', 'test', 'a subscription'],
  'POST /v1/subscriptions/:id/skip': ['skipped', 'skip', 'an event of a subscription'],
  'GET /v1/webhook-deliveries': listed('webhook deliveries'),
  'GET /v1/webhook-deliveries/:id': viewed('a webhook delivery'),
  'POST /v1/webhook-deliveries/:id/replay': ['replayed', 'replay', 'a webhook delivery'],
  'POST /v1/webhook-deliveries/:id/dismiss': ['dismissed', 'dismiss', 'a webhook delivery'],
  'POST /v1/webhook-deliveries/replay': ['replayed', 'replay', 'a selection of webhook deliveries'],
};

/** The actions of the service itself. */
const OWN: Record<string, Sentence> = {
  'authentication.failed': ['signed in', 'sign in', 'without a valid key'],
  others: ['made', 'make', 'other requests'],
  erasure: ['erased', 'erase', 'the data of a client'],
  'person.linked-by-event': ['linked', 'link', 'a person through a webhook'],
  'sending.held': ['held', 'hold', 'calls to the platform'],
  'session.linked-by-evidence': ['matched', 'match', 'a session to its request'],
};

/** The families of actions, by their beginning. */
const FAMILIES: Record<string, Sentence> = {
  'platform.': ['sent', 'send', 'data to the platform'],
  'retention.': ['removed', 'remove', 'data whose retention period has ended'],
};

/** One-word outcomes that are not problem types. */
const DONE: readonly string[] = ['ok', 'begun', 'held', 'released'];

/** True for a problem type, also if it was counted: `forbidden, 3 times`. */
const isRefused = (outcome: string) => !DONE.includes(outcome) && /^[a-z-]+(, \d+ times)?$/.test(outcome);

/** The actions that a search of the audit log may name. */
export const AUDIT_ACTIONS = labels(
  Object.fromEntries(
    Object.entries({ ...REQUESTS, ...OWN }).map(([action, [past, , rest]]) => [
      action,
      `${past.charAt(0).toUpperCase()}${past.slice(1)} ${rest}`,
    ]),
  ),
);

/**
 * Describes the action of an entry: `viewed the notes of a session`, or `tried to view the notes of a session`.
 *
 * @param action a request with HEAD has the words of GET, because it is handled in the same way
 * @param outcome of the entry: a problem's type if the request was refused
 * @returns the action itself if it has no words
 */
export function inWords(action: string, outcome: string): string {
  const family = Object.keys(FAMILIES).find((start) => action.startsWith(start)) ?? '';
  const sentence = REQUESTS[action.replace(/^HEAD /, 'GET ')] ?? OWN[action] ?? FAMILIES[family];
  if (!sentence) return action;
  const [past, infinitive, rest] = sentence;
  return isRefused(outcome) ? `tried to ${infinitive} ${rest}` : `${past} ${rest}`;
}
