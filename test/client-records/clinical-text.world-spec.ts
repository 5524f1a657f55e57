import type { CallOptions } from '../../harness/world/request.js';
import { finishJob } from '../../simulator/compliance/compliance-routes.js';
import type { ComplianceJobResponse } from '../../src/compliance/compliance.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { NO_FACTS } from '../../src/sessions/model/session-facts.js';
import { SessionSeal } from '../../src/sessions/model/session-seal.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { submittedJobs } from '../compliance/submitted-jobs.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { useClientsWithRecords } from './clients-with-records.js';

const world = useWorld();
useClientsWithRecords(world);

/** Keys with every scope that shows the records below: one with clinical text, and one without. */
let keys: [withText: string, withoutText: string];
beforeEach(async () => {
  const key = async (...more: string[]) => {
    const scopes = ['people:read', 'people:write', 'sessions:read', 'sessions:write', 'compliance', ...more];
    return (await world.call<{ key: string }>('POST', '/v1/api-keys', { body: { name: 'a key', scopes } })).body.key;
  };
  keys = [await key('notes:read'), await key()];
});

/** The answers to the two keys. */
async function both<Body>(method: string, path: string, options: CallOptions = {}): Promise<[Body, Body]> {
  const answers: Body[] = [];
  for (const key of keys) answers.push((await world.call<Body>(method, path, { ...options, key })).body);
  return answers as [Body, Body];
}

const request = (noteTemplateId: string) => ({
  ...{ provider: 'p-1', noteTemplateIds: [noteTemplateId] },
  input: { text: { text: 'He slept well.' } },
});

describe('a key without clinical text is not shown', () => {
  test('why a session failed', async () => {
    world.platform.set({ sessionFailureRate: 1 });
    const { body } = await world.call<SessionResponse>('POST', '/v1/sessions', { body: request(SOAP), wait: 60 });
    await world.settle();
    const path = `/v1/sessions/${body.id}`;
    const spoken = { code: 'low-content-transcript', message: expect.stringContaining('audio') };
    const unspoken = { code: 'low-content-transcript', message: null };
    const [shown, bare] = await both<SessionResponse>('GET', path);
    expect([shown.error, bare.error]).toEqual([spoken, unspoken]);
    expect({ ...bare, error: shown.error }).toEqual(shown);
    const lists = await both<Page<SessionResponse>>('GET', '/v1/sessions');
    expect(lists.map(({ items }) => items[0]?.error)).toEqual([spoken, unspoken]);

    // A code that the contract does not list may be a sentence.
    const error = { code: 'Jane Roe said too little', message: '' };
    const facts = world.get(SessionSeal).sealFacts(body.id, { ...NO_FACTS, error });
    await world.sql('UPDATE sessions SET facts = $2 WHERE id = $1', [body.id, facts]);
    const sentences = await both<SessionResponse>('GET', path);
    expect(sentences.map((session) => session.error?.code)).toEqual([error.code, 'platform-error']);
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
    const said = { code: 'rejected', message: expect.stringContaining('The platform said: ') };
    const unsaid = { code: 'rejected', message: expect.not.stringContaining('The platform said') };
    const shown = await both<PersonResponse>('GET', '/v1/providers/p-2');
    const listed = await both<Page<PersonResponse>>('GET', '/v1/providers?state=failed');
    const found = await both<Page<PersonResponse>>('POST', '/v1/people/search', { body: { externalId: 'p-2' } });
    const resolved = await both<PersonResponse>('POST', '/v1/providers/p-2/resolve', { body: { action: 'ignore' } });
    expect(shown.map(({ sync }) => sync.error)).toEqual([said, unsaid]);
    for (const pages of [listed, found]) expect(pages.map(({ items }) => items[0]?.sync.error)).toEqual([said, unsaid]);
    expect(JSON.stringify(resolved[1])).not.toContain('The platform said');
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
    const [shown, bare] = await both<ComplianceJobResponse>('GET', `/v1/compliance/jobs/${body.job}`);
    expect(shown.platformMessage).toEqual(expect.any(String));
    expect(bare).not.toHaveProperty('platformMessage');
  });
});
