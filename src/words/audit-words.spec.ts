import { inWords } from './audit-words.js';

describe('an action in words', () => {
  test.each([
    ['GET /v1/sessions/:id/notes', 'ok', 'viewed the notes of a session'],
    ['GET /v1/sessions/:id/notes', 'forbidden, 3 times', 'tried to view the notes of a session'],
    ['PUT /v1/clients/:externalId/legal-hold', 'held for CASE-1', 'set a legal hold'],
    ['DELETE /v1/clients/:externalId/legal-hold', 'released', 'released a legal hold'],
    ['POST /v1/sessions', 'begun', 'requested a session'],
    ['platform.createClient', 'not-sent', 'tried to send data to the platform'],
    ['retention.feed', '12 removed', 'removed data whose retention period has ended'],
    ['authentication.failed', 'unauthenticated', 'tried to sign in without a valid key'],
    ['HEAD /v1/sessions/:id/notes', 'ok', 'viewed the notes of a session'],
    ['GET /v2/unknown', 'not-found', 'GET /v2/unknown'],
  ])('%s with outcome %s: %s', (action, outcome, words) => expect(inWords(action, outcome)).toBe(words));
});
