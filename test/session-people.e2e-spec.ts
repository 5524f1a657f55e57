import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { Page } from '../src/http/request/page.js';
import type { SessionResponse } from '../src/sessions/model/session-view.js';
import { type Mirror, useMirrors } from './support/service.js';

const SOAP = '11111111-1111-4111-8111-111111111111';
const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;

beforeAll(async () => {
  mirror = await newMirror();
  service = await mirror.start();
});

const put = (path: string, body: object) => service.call('PUT', path, { body, wait: 60 });
const newClient = () => put('/v1/clients/c-kept', { firstName: 'Cleo', lastName: 'Adler', providers: ['p-kept'] });

test('after the deletion of a client its sessions go on naming it by its external id, and are found by it', async () => {
  await put('/v1/providers/p-kept', { email: 'pia@example.org', firstName: 'Pia', lastName: 'Ruiz' });
  const first = await newClient();
  const wish = { provider: 'p-kept', client: 'c-kept', noteTemplateIds: [SOAP], input: { text: { text: 'Notes.' } } };
  const { status, body: session } = await service.call<SessionResponse>('POST', '/v1/sessions', {
    body: wish,
    wait: 60,
  });
  expect([first.status, status]).toEqual([200, 201]);
  const named = async () => {
    const [shown, listed] = await Promise.all([
      service.call<SessionResponse>('GET', `/v1/sessions/${session.id}`),
      service.call<Page<SessionResponse>>('GET', '/v1/sessions?client=c-kept&provider=p-kept'),
    ]);
    return [shown.body.clients, shown.body.provider, listed.body.items.map(({ id }) => id)];
  };
  const before = await named();
  expect(before).toEqual([['c-kept'], 'p-kept', [session.id]]);

  const gone = await service.call('DELETE', '/v1/clients/c-kept', { wait: 60 });
  expect([gone.status, gone.body.sync.state]).toEqual([200, 'deleted']);
  expect(await named()).toEqual(before);

  const again = await newClient();
  expect(again.body.platformUserId).not.toBe(first.body.platformUserId);
  expect(await named()).toEqual(before);

  await service.call('DELETE', '/v1/clients/c-kept', { wait: 60 });
  const provider = await until('the provider is deleted', async () => {
    const answer = await service.call('DELETE', '/v1/providers/p-kept', { wait: 60 });
    return answer.status === 200 ? answer.body : undefined;
  });
  expect(provider.sync.state).toBe('deleted');
  expect(await named()).toEqual(before);
});
