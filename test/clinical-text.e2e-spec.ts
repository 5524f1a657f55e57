import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { ComplianceJobResponse } from '../src/compliance/compliance.dto.js';
import type { Page } from '../src/http/request/page.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import type { SessionOwner } from '../src/sessions/model/session-facts.js';
import type { SessionResponse } from '../src/sessions/model/session-view.js';
import { WEBHOOK_SECRET } from './support/app.js';
import { type Mirror, useMirrors } from './support/service.js';
import { sealedFacts } from './support/session-facts.js';
import { SOAP } from './support/session-requests-app.js';
import { settledPerson } from './support/settled-person.js';
import { answerTo } from './support/webhook-requests.js';

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;
/** Keys with every scope that shows the records below: one with clinical text, and one without. */
let reader: string;
let metadata: string;

beforeAll(async () => {
  mirror = await newMirror({
    platform: { stepMs: 1, sessionFailureRate: 1, webhookSecret: WEBHOOK_SECRET },
    env: { PLATFORM_TIMEOUT_SECONDS: '60' },
  });
  service = await mirror.start();
  mirror.simulator.state.settings.webhookUrl = `${service.url}/webhooks/platform`;
  metadata = await makeKey();
  reader = await makeKey('notes:read');
  await service.call('PUT', '/v1/providers/p-1', {
    body: { email: 'p-1@example.org', firstName: 'Noor', lastName: 'Haddad' },
  });
  expect((await settledPerson(service, 'providers/p-1')).sync.state).toBe('synced');
});

async function makeKey(...more: string[]): Promise<string> {
  const scopes = ['people:read', 'people:write', 'sessions:read', 'sessions:write', 'compliance', ...more];
  return (await service.call<{ key: string }>('POST', '/v1/api-keys', { body: { name: 'a key', scopes } })).body.key;
}

/** What two keys are answered: with clinical text, and without. */
async function both<Body>(method: string, path: string, body?: unknown): Promise<[Body, Body]> {
  const answers = [];
  // A create waits for what the platform says.
  const wait = method === 'POST' && path === '/v1/sessions' ? 60 : undefined;
  for (const key of [reader, metadata])
    answers.push((await service.call<Body>(method, path, { body, wait, key })).body);
  return answers as [Body, Body];
}

const request = (noteTemplateId: string) => ({
  provider: 'p-1',
  noteTemplateIds: [noteTemplateId],
  input: { text: { text: 'He slept well.' } },
});

test('why a session failed', async () => {
  const { body, status } = await service.call<SessionResponse>('POST', '/v1/sessions', { body: request(SOAP) });
  expect(status).toBeLessThan(300);
  const path = `/v1/sessions/${body.id}`;
  await until('it has failed', async () => (await service.call<SessionResponse>('GET', path)).body.error?.message);
  // Another fetch would change what is compared and replaced below.
  await mirror.simulator.state.deliveries.settled();
  await until('every event is covered by a fetch', async () => {
    const open = await mirror.sql(
      `SELECT 1 FROM webhook_deliveries WHERE due_at IS NOT NULL
       UNION ALL SELECT 1 FROM sessions WHERE wanted_generation > fetched_generation OR lease_owner IS NOT NULL`,
    );
    return open.length === 0;
  });
  const spoken = { code: 'low-content-transcript', message: expect.stringContaining('audio') };
  const unspoken = { code: 'low-content-transcript', message: null };
  const [shown, bare] = await both<SessionResponse>('GET', path);
  expect([shown.error, bare.error]).toEqual([spoken, unspoken]);
  expect({ ...bare, error: shown.error }).toEqual(shown);
  const lists = await both<Page<SessionResponse>>('GET', '/v1/sessions');
  expect(lists.map(({ items }) => items[0]?.error)).toEqual([spoken, unspoken]);

  const [owner = {}] = await mirror.sql<SessionOwner>('SELECT * FROM sessions WHERE id = $1', [body.id]);
  const error = { code: 'Jane Roe said too little', message: '' };
  const facts = sealedFacts(body.id, owner, { error });
  await mirror.sql('UPDATE sessions SET facts = $2 WHERE id = $1', [body.id, facts]);
  const sentences = await both<SessionResponse>('GET', path);
  expect(sentences.map(({ error }) => error?.code)).toEqual(['Jane Roe said too little', 'platform-error']);
});

test('why the platform refused a session', async () => {
  type Refusal = { type: string; platformMessage: string | null };
  const [shown, bare] = await both<Refusal>('POST', '/v1/sessions', request('no-such-template'));
  expect([shown.type, bare.type]).toEqual(Array(2).fill('urn:notebridge:problem:platform-rejected'));
  expect([shown.platformMessage, bare.platformMessage]).toEqual([expect.stringMatching(/noteTemplateIds/), null]);
});

test('why the platform refused a person', async () => {
  mirror.trouble({
    operation: 'createProvider',
    kind: 'status',
    status: 422,
    count: null,
    match: { partnerUserId: 'p-2' },
  });
  const person = { email: 'p-2@example.org', firstName: 'Jane', lastName: 'Roe' };
  await service.call('PUT', '/v1/providers/p-2', { body: person });
  await settledPerson(service, 'providers/p-2');
  const said = { code: 'rejected', message: expect.stringContaining('The platform said: ') };
  const unsaid = { code: 'rejected', message: expect.not.stringContaining('The platform said') };
  const shown = await both<PersonResponse>('GET', '/v1/providers/p-2');
  const listed = await both<Page<PersonResponse>>('GET', '/v1/providers?state=failed');
  const found = await both<Page<PersonResponse>>('POST', '/v1/people/search', { externalId: 'p-2' });
  const resolved = await both<PersonResponse>('POST', '/v1/providers/p-2/resolve', { action: 'ignore' });
  expect(shown.map(({ sync }) => sync.error)).toEqual([said, unsaid]);
  for (const pages of [listed, found]) expect(pages.map(({ items }) => items[0]?.sync.error)).toEqual([said, unsaid]);
  expect(JSON.stringify(resolved[1])).not.toContain('The platform said');
});

test('what a check of documents found', async () => {
  const form = new FormData();
  form.append(
    'files',
    new Blob(['%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n'], { type: 'application/pdf' }),
    'a.pdf',
  );
  const submitted = await answerTo(`${service.url}/v1/compliance/jobs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${metadata}` },
    body: form,
  });
  const job = (await submitted.json()) as ComplianceJobResponse;
  expect(job).not.toHaveProperty('result');
  const path = `/v1/compliance/jobs/${job.id}`;
  await until('its result is there', async () => (await service.call<ComplianceJobResponse>('GET', path)).body.result);
  const [shown, bare] = await both<ComplianceJobResponse>('GET', path);
  expect(shown.result).toMatchObject({ jobId: shown.jobId });
  expect(bare).toEqual({ ...shown, result: undefined });
  expect(bare).not.toHaveProperty('result');
});
