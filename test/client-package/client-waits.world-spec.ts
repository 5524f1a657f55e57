import { createClient, NotebridgeError, type Waited } from '../../client/notebridge-client.js';
import { ADMIN_KEY } from '../support/app.js';
import { mirroredPeople, SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld({ platform: { stepMs: 100 } });
const newClient = () => createClient({ url: world.url, key: ADMIN_KEY });

const endOf = async (waiting: Promise<unknown>) => {
  const error = (await world.workWhile(waiting).catch((reason: unknown) => reason)) as NotebridgeError;
  expect(error).toBeInstanceOf(NotebridgeError);
  return [error.type, error.status, error.more.state, error.more.code];
};

const put = (externalId: string, email: string) =>
  newClient().PUT('/v1/providers/{externalId}', {
    params: { path: { externalId } },
    body: { email, firstName: 'Ada', lastName: 'Byron' },
  });

describe('waitFor a person', () => {
  test('returns it once the platform has it', async () => {
    await put('p-9', 'ada@example.test');
    const provider = await world.workWhile(newClient().waitFor('provider', 'p-9'));
    expect([provider.externalId, provider.sync.state]).toEqual(['p-9', 'synced']);
  });

  test('returns it once it is deleted', async () => {
    await put('p-9', 'ada@example.test');
    await world.settle();
    await newClient().DELETE('/v1/providers/{externalId}', { params: { path: { externalId: 'p-9' } } });
    expect((await world.workWhile(newClient().waitFor('provider', 'p-9'))).sync.state).toBe('deleted');
  });

  test('throws bad-end if another person has the email', async () => {
    await put('p-8', 'ada@example.test');
    await put('p-9', 'ada@example.test');
    expect(await endOf(newClient().waitFor('provider', 'p-9'))).toEqual(['bad-end', 0, 'needs-review', 'email-taken']);
  });

  test('throws the problem of an unknown id', async () => {
    await expect(newClient().waitFor('client', 'c-99')).rejects.toMatchObject({
      type: 'client-not-found',
      status: 404,
    });
  });

  test('ends with the reason of its signal', async () => {
    await put('p-9', 'ada@example.test');
    const stopping = new AbortController();
    const waiting = newClient().waitFor('provider', 'p-9', { signal: stopping.signal });
    const reason = new Error('enough');
    setTimeout(() => stopping.abort(reason), 50);
    await expect(waiting).rejects.toBe(reason);
  });
});

describe('waitFor a session', () => {
  beforeEach(() => mirroredPeople(world));

  const create = async (template = SOAP) => {
    const input = { text: { text: 'Slept better.' } };
    const body = { provider: 'p-1', client: 'c-1', noteTemplateIds: [template], partnerAppointmentId: 'a-1', input };
    return (await newClient().POST('/v1/sessions', { body, headers: { prefer: 'wait=0' } })).data;
  };

  test('returns it once it has notes', async () => {
    const { id, notesRevision } = await create();
    expect(notesRevision).toBe(0);
    const session = await world.workWhile(newClient().waitFor('session', id));
    expect([session.id, session.notesRevision]).toEqual([id, 1]);
    const { data } = await newClient().GET('/v1/sessions/{id}/notes', { params: { path: { id } } });
    expect(data.documents).toHaveLength(1);
  });

  test('returns it as soon as `until` holds', async () => {
    const { id } = await create();
    const until = ({ sessionId }: Waited['session']) => sessionId !== null;
    const session = await world.workWhile(newClient().waitFor('session', id, { until }));
    expect(session.sessionId).not.toBeNull();
  });

  test('throws bad-end if the platform rejects it', async () => {
    const { id } = await create('no-such-template');
    expect(await endOf(newClient().waitFor('session', id))).toEqual(['bad-end', 0, 'Rejected', 'platform-rejected']);
  });
});

test('waitFor an import returns it at its end', async () => {
  const form = new FormData();
  const csv = 'externalId,email,firstName,lastName\nP-1,p1@mail.example,Noor,Haddad\n';
  form.append('providers', new Blob([csv], { type: 'text/csv' }), 'providers.csv');
  const { data } = await newClient().upload('/v1/imports', form);
  const ended = await world.workWhile(newClient().waitFor('import', data.id));
  expect([ended.state, ended.counts.created]).toEqual(['completed', 1]);
});
