import type { CallOptions } from '../../harness/world/request.js';
import { finishJob } from '../../simulator/compliance/compliance-routes.js';
import type { Scope } from '../../src/access/identity/scope.js';
import type { ComplianceJobResponse } from '../../src/compliance/compliance.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { ImportRowPageResponse } from '../../src/imports/api/imports.dto.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { ProfileSeal } from '../../src/people/rules/profile.js';
import { NO_FACTS } from '../../src/sessions/model/session-facts.js';
import { SessionSeal } from '../../src/sessions/model/session-seal.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { useClientsWithRecords } from '../client-records/clients-with-records.js';
import { submittedJobs } from '../compliance/submitted-jobs.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const { put, upload } = useClientsWithRecords(world);

async function newKey(...scopes: Scope[]): Promise<string> {
  return (await world.call<{ key: string }>('POST', '/v1/api-keys', { body: { name: 'a key', scopes } })).body.key;
}

/** Keys with every scope that shows the records below: one with clinical text, and one without. */
let keys: [withText: string, withoutText: string];
beforeEach(async () => {
  const scopes: Scope[] = ['people:read', 'people:write', 'sessions:read', 'sessions:write', 'compliance'];
  keys = [await newKey('notes:read', ...scopes), await newKey(...scopes)];
});

/** The answers to the two keys. */
async function both<Body>(method: string, path: string, options: CallOptions = {}): Promise<[Body, Body]> {
  const answers: Body[] = [];
  for (const key of keys) answers.push((await world.call<Body>(method, path, { ...options, key })).body);
  return answers as [Body, Body];
}

const request = (noteTemplateId: string) => ({
  ...{ provider: 'p-1', noteTemplateIds: [noteTemplateId] },
  input: { text: { text: 'Slept well.' } },
});

describe('a key without clinical text is not shown', () => {
  test('why a session failed', async () => {
    world.platform.set({ sessionFailureRate: 1 });
    const { body } = await world.call<SessionResponse>('POST', '/v1/sessions', { body: request(SOAP), wait: 60 });
    await world.settle();
    const path = `/v1/sessions/${body.id}`;
    const spoken = { code: 'low-content-transcript', message: expect.stringContaining('audio') };
    const withoutMessage = { code: 'low-content-transcript', message: null };
    const [shown, bare] = await both<SessionResponse>('GET', path);
    expect([shown.error, bare.error]).toEqual([spoken, withoutMessage]);
    expect({ ...bare, error: shown.error }).toEqual(shown);
    const lists = await both<Page<SessionResponse>>('GET', '/v1/sessions');
    expect(lists.map(({ items }) => items[0]?.error)).toEqual([spoken, withoutMessage]);

    // A code that the contract does not list may be a sentence.
    const error = { code: 'Jane Roe said too little', message: 'Twice.' };
    const facts = world.get(SessionSeal).sealFacts(body.id, { ...NO_FACTS, error });
    await world.sql('UPDATE sessions SET facts = $2 WHERE id = $1', [body.id, facts]);
    const sentences = await both<SessionResponse>('GET', path);
    expect(sentences.map((session) => session.error)).toEqual([
      { code: 'platform-error', message: 'Jane Roe said too little: Twice.' },
      { code: 'platform-error', message: null },
    ]);
  });

  test('why the platform rejected a session', async () => {
    type Refusal = { type: string; platformMessage: string | null };
    const [shown, bare] = await both<Refusal>('POST', '/v1/sessions', { body: request('no-such-template'), wait: 60 });
    expect([shown.type, bare.type]).toEqual(Array(2).fill('urn:notebridge:problem:platform-rejected'));
    expect([shown.platformMessage, bare.platformMessage]).toEqual([expect.stringMatching(/noteTemplateIds/), null]);
  });

  test('why the platform rejected a person', async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status: 422 });
    const person = { email: 'p-2@example.org', firstName: 'Jane', lastName: 'Roe' };
    await world.call('PUT', '/v1/providers/p-2', { body: person, wait: 60 });
    const full = { code: 'rejected', message: expect.any(String), platformMessage: expect.any(String) };
    const withoutMessage = { ...full, platformMessage: null };
    const shown = await both<PersonResponse>('GET', '/v1/providers/p-2');
    const listed = await both<Page<PersonResponse>>('GET', '/v1/providers?state=failed');
    const found = await both<Page<PersonResponse>>('POST', '/v1/people/search', { body: { externalId: 'p-2' } });
    const resolved = await both<PersonResponse>('POST', '/v1/providers/p-2/resolve', { body: { action: 'ignore' } });
    expect(shown.map(({ sync }) => sync.error)).toEqual([full, withoutMessage]);
    for (const pages of [listed, found])
      expect(pages.map(({ items }) => items[0]?.sync.error)).toEqual([full, withoutMessage]);
    expect(resolved[1].sync.error?.platformMessage ?? null).toBeNull();
  });

  test('the result of a compliance job', async () => {
    const { post, platformJob } = submittedJobs(world);
    const { body: job } = await post(undefined, { key: keys[1] });
    expect(job).not.toHaveProperty('result');
    finishJob(world.platform.simulator.state, platformJob(job.jobId));
    await world.settle();
    const [shown, bare] = await both<ComplianceJobResponse>('GET', `/v1/compliance/jobs/${job.id}`);
    expect(shown.result).toMatchObject({ jobId: shown.jobId });
    const { result: _, platformMessage: __, ...rest } = shown;
    expect(bare).toEqual(rest);
  });

  test('why the platform rejected a compliance job', async () => {
    const { post } = submittedJobs(world);
    world.platform.injectFault({ operation: 'submitComplianceJob', kind: 'status', status: 422 });
    const { body } = await post(undefined, { key: keys[1] });
    expect(body).toMatchObject({ type: 'urn:notebridge:problem:platform-rejected', platformMessage: null });
    const [shown, bare] = await both<ComplianceJobResponse>('GET', `/v1/compliance/jobs/${body.id}`);
    expect(shown.platformMessage).toEqual(expect.any(String));
    expect(bare).not.toHaveProperty('platformMessage');
  });
});

describe('without the scope to read people', () => {
  const HIDDEN = { email: null, firstName: null, lastName: null, platformUserId: null, origin: null, inviteUrl: null };

  test('every change of a person answers with its state only', async () => {
    await put('c-1', 'Cy', 'Lee', 'cy@example.org');
    await put('c-2', 'Di', 'Lee');
    const key = await newKey('people:write');
    const answers: string[] = [];
    const change = async (method: string, path: string, body?: object) => {
      const answer = await world.call<PersonResponse>(method, `/v1/${path}`, { body, key, wait: 60 });
      expect([path, answer.body]).toEqual([path, expect.objectContaining(HIDDEN)]);
      expect(answer.body.sync.state).toEqual(expect.any(String));
      answers.push(JSON.stringify(answer.body));
    };
    await change('PUT', 'clients/c-1/providers', { providers: ['p-1'] });
    await change('PUT', 'providers/p-1', { email: 'p-1@example.org', firstName: 'Pia', lastName: 'Ruiz' });
    world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 422 });
    await change('PUT', 'clients/c-3', { firstName: 'Ed', lastName: 'Lee', providers: ['p-1'] });
    await change('POST', 'clients/c-3/resolve', { action: 'retry' });
    await change('POST', 'clients/c-3/rename', { externalId: 'c-4' });
    await change('POST', 'clients/c-2/merge', { into: 'c-1' });
    await change('DELETE', 'clients/c-1');
    expect(answers.join()).not.toMatch(/Lee|Ruiz|example\.org|invite\/|p-1"\]/);
  });

  test('rejected rows are shown without their cells, and not as CSV', async () => {
    const id = await upload('dryRun=true', 'C-9,not-an-address,Jane,Roe,p-1');
    await world.settle();
    const path = `/v1/imports/${id}/rows?outcome=rejected&cells=true`;
    const rows = async (key: string) => (await world.call<ImportRowPageResponse>('GET', path, { key })).body.items;
    expect(await rows(await newKey('imports', 'people:read'))).toMatchObject([{ cells: { lastName: 'Roe' } }]);
    const key = await newKey('imports');
    expect(await rows(key)).toMatchObject([{ externalId: 'C-9', code: 'bad-email' }]);
    expect(JSON.stringify(await rows(key))).not.toContain('Roe');
    expect((await world.call('GET', `/v1/imports/${id}/rejected.csv`, { key })).status).toBe(403);
  });
});

test('an invite link is shown only with invites:read, also in an export', async () => {
  const scopes: Scope[] = ['people:read', 'sessions:read', 'notes:read'];
  const [without, withInvites] = [await newKey(...scopes), await newKey(...scopes, 'invites:read')];
  await put('c-1', 'Cy', 'Lee', 'cy@example.org');
  const [client] = await world.sql<{ id: string }>(`SELECT id FROM people WHERE external_id = 'c-1'`);
  const link = 'https://platform.example.org/invite/7';
  const sealed = client && world.get(ProfileSeal).sealText(client, 'invite_url', link);
  await world.sql('UPDATE people SET invite_url = $1 WHERE id = $2', [sealed, client?.id]);
  for (const path of ['clients/c-1', 'clients', 'clients/c-1/export']) {
    const texts = [];
    for (const key of [without, withInvites]) {
      texts.push(JSON.stringify((await world.call('GET', `/v1/${path}`, { key })).body));
    }
    expect(texts.map((text) => [text.includes('Lee'), text.includes(link)])).toEqual([
      [true, false],
      [true, true],
    ]);
  }
});

test('without sessions:read, a requested session has no facts, also in a replayed answer', async () => {
  await put('c-1', 'Cy', 'Lee');
  const key = await newKey('sessions:write');
  const options = { body: { ...request(SOAP), client: 'c-1' }, key, wait: 60, idempotencyKey: 'a key' };
  const answers = [
    await world.call<SessionResponse>('POST', '/v1/sessions', options),
    await world.call<SessionResponse>('POST', '/v1/sessions', options),
  ];
  for (const { status, body } of answers) {
    expect([status, body.sessionId]).toEqual([201, expect.any(String)]);
    expect(body).toMatchObject({ provider: null, clients: [], providerUserId: null, clientUserIds: [], date: null });
    expect(body.noteTemplates).toEqual([]);
  }
  expect(answers[1]?.headers.get('idempotent-replayed')).toBe('true');
});
