import { PeopleCalls } from '../../src/people/people-calls.service.js';
import { factsOf, type OperationName } from '../../src/platform/contract/operations.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { PDF, submittedJobs } from '../compliance/submitted-jobs.js';
import { mirroredPeople, SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const jobs = submittedJobs(world);

const hold = () => world.call('PUT', '/v1/sending', { body: { held: true, reason: 'CASE-1' } });
const release = async () => {
  await world.call('PUT', '/v1/sending', { body: { held: false } });
  await world.settle();
};

const person = (name: string) => ({ email: `${name}@example.test`, firstName: name, lastName: 'Byron' });
const putProvider = (id: string) => world.call('PUT', `/v1/providers/${id}`, { body: person(id) });
const stateOf = async (path: string) => (await world.call('GET', `/v1/${path}`)).body.sync.state;
const codeOf = async (path: string) => (await world.call('GET', `/v1/${path}`)).body.sync.error?.code;
/** The calls that reached the platform and change something. */
const changes = () =>
  world.platform.simulator.state.arrivals
    .list()
    .flatMap(({ operation }) => (operation && !factsOf(operation as OperationName).reads ? [operation] : []));
/** Counts that a hold must not change. */
const traces = () =>
  world.sql(
    `SELECT (SELECT count(*)::int FROM platform_pauses WHERE failing_since IS NOT NULL) AS pauses,
       (SELECT coalesce(sum(failures), 0)::int FROM people) + (SELECT coalesce(sum(failures), 0)::int FROM sessions)
         + (SELECT coalesce(sum(failures), 0)::int FROM compliance_jobs) AS failures,
       (SELECT count(*)::int FROM people WHERE num_nonnulls(call_id, unsettled_call) > 0) AS calls`,
  );
const UNTOUCHED = [{ pauses: 0, failures: 0, calls: 0 }];

/** Lets an hour pass, and does all work that becomes due. */
async function hour(): Promise<void> {
  for (let minutes = 0; minutes < 60; minutes += 10) {
    await world.advance('10 min');
    await world.settle();
  }
}

describe('while sending is held', () => {
  it('people are looked up, wait without a trace, and continue after the release', async () => {
    await hold();
    await putProvider('p-1');
    await world.call('PUT', '/v1/clients/c-1', { body: { firstName: 'Cy', lastName: 'Lee', providers: ['p-1'] } });
    await world.settle();
    expect([world.platform.arrivals('checkUser'), changes()]).toEqual([1, []]);
    await hour();
    expect([await stateOf('providers/p-1'), await stateOf('clients/c-1')]).toEqual(['pending', 'waiting']);
    expect(await codeOf('providers/p-1')).toBe('held');
    expect([changes(), await traces()]).toEqual([[], UNTOUCHED]);
    await world.restart();
    await world.settle();
    expect(changes()).toEqual([]);
    await release();
    expect(await codeOf('providers/p-1')).toBeUndefined();
    expect([await stateOf('providers/p-1'), await stateOf('clients/c-1')]).toEqual(['synced', 'synced']);
    expect([world.platform.usersOf('p-1').length, world.platform.usersOf('c-1').length]).toEqual([1, 1]);
  });

  it('a person that exists on the platform is linked', async () => {
    const email = person('p-1').email;
    const users = world.platform.simulator.state.users;
    users.add({ role: 'HealthcareProvider', email, firstName: 'p-1', lastName: 'Byron', providerUserIds: [] });
    await hold();
    await putProvider('p-1');
    await world.settle();
    expect([await stateOf('providers/p-1'), changes()]).toEqual(['synced', []]);
  });

  it('a waiting caller gets its answer immediately', async () => {
    await hold();
    const { status, body } = await world.call('PUT', '/v1/providers/p-1', { body: person('p-1'), wait: 60 });
    expect([status, body.sync.state, body.sync.error?.code]).toEqual([202, 'pending', 'held']);
  });

  it('lists and deletions wait', async () => {
    await mirroredPeople(world);
    await hold();
    await world.call('PUT', '/v1/clients/c-1/providers', { body: { providers: ['p-2'] } });
    await world.call('DELETE', '/v1/clients/c-1');
    await world.call('DELETE', '/v1/clients/c-2');
    await hour();
    expect([await stateOf('clients/c-1'), changes(), await traces()]).toEqual(['deleting', [], UNTOUCHED]);
    await release();
    expect([await stateOf('clients/c-1'), changes()]).toEqual(['deleted', ['deleteUser']]);
  });

  it('an import waits, and continues after the release', async () => {
    await hold();
    const rows = Array.from({ length: 70 }, (_, at) => `p-${at},p-${at}@example.test,Ada,Byron\n`);
    const csv = Buffer.from(`externalId,email,firstName,lastName\n${rows.join('')}`);
    const upload = { body: csv, headers: { 'content-type': 'text/csv' } };
    const { id } = (await world.call<{ id: string }>('POST', '/v1/imports?kind=providers', upload)).body;
    const show = async () =>
      (await world.call<{ state: string; counts: { created: number } }>('GET', `/v1/imports/${id}`)).body;
    await world.settle();
    await hour();
    expect([(await show()).state, changes(), await traces()]).toEqual(['running', [], UNTOUCHED]);
    await release();
    await hour();
    expect(await show()).toMatchObject({ state: 'completed', counts: { created: 70 } });
    expect(changes()).toHaveLength(70);
  });

  it('requests for sessions wait, and are sent once after the release; submissions are refused until then', async () => {
    await mirroredPeople(world);
    const { uploadUrl, url, method, headers } = await jobs.uploadUrl();
    await fetch(uploadUrl, { method, headers, body: PDF });
    await hold();
    const input = { text: { text: 'They spoke.' } };
    const body = { provider: 'p-1', client: 'c-1', noteTemplateIds: [SOAP], input, partnerAppointmentId: 'visit-1' };
    const { id } = (await world.call<SessionResponse>('POST', '/v1/sessions', { body })).body;
    const submit = () => jobs.submitJson({ files: [{ id: 'a', url }] }, { idempotencyKey: 'k' });
    expect(await submit()).toMatchObject({ status: 503, body: { type: 'urn:notebridge:problem:sending-held' } });
    expect((await jobs.list()).items).toEqual([]);
    await hour();
    const session = async () => (await world.call<SessionResponse>('GET', `/v1/sessions/${id}`)).body;
    expect(await session()).toMatchObject({ state: 'Requested', error: { code: 'held' } });
    expect([changes(), await traces()]).toEqual([['complianceUploadUrl'], UNTOUCHED]);
    await release();
    expect((await session()).sessionId).not.toBeNull();
    expect(await submit()).toMatchObject({ status: 201, body: { state: 'Submitted', error: null } });
    expect(changes().sort()).toEqual(['complianceUploadUrl', 'createSession', 'submitComplianceJob']);
  });

  it('another process sends nothing either', async () => {
    const another = await world.startAnother();
    await hold();
    await putProvider('p-1');
    for (let rounds = 0; rounds < 3; rounds += 1) await another.work.people();
    expect([world.platform.arrivals('checkUser'), changes()]).toEqual([1, []]);
  });
});

describe('a hold that begins between the decision about a call and its sending', () => {
  it('leaves nothing open, and the call is tried again with a backoff after the release', async () => {
    const people = world.get(PeopleCalls);
    const perform = people.perform.bind(people);
    const performing = jest.spyOn(people, 'perform').mockImplementation(async (...call) => {
      if (!factsOf(call[0].call.operation).reads) await hold();
      return perform(...call);
    });
    await putProvider('p-1');
    await world.settle();
    expect([await stateOf('providers/p-1'), changes()]).toEqual(['pending', []]);
    expect(await traces()).toEqual([{ pauses: 0, failures: 0, calls: 0 }]);
    await hour();
    expect(changes()).toEqual([]);
    performing.mockRestore();
    await release();
    expect([await stateOf('providers/p-1'), world.platform.usersOf('p-1').length]).toEqual(['synced', 1]);
  });
});
