import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { type Problem, useArrivingSessions } from './arriving-sessions.js';

const world = useWorld();
const { onPlatform, show } = useArrivingSessions(world);

const request = (date: string) =>
  world.call<SessionResponse & Problem & { detail: string }>('POST', '/v1/sessions', {
    body: { provider: 'p-1', noteTemplateIds: [SOAP], input: { text: { text: 'They spoke.' } }, date },
    wait: 60,
  });

it.each(['2026-01-31T08:00:00+01:00', '20260131T080000+0100', '2026-W05-6T08:00:00+01:00'])(
  'the date %s of a session is sent to the platform in the extended form',
  async (date) => {
    const { status, body } = await request(date);
    expect([status, onPlatform(body.sessionId).date]).toEqual([201, '2026-01-31T08:00:00+01:00']);
    await world.settle();
    expect((await show(body.id)).date).toBe('2026-01-31T08:00:00+01:00');
  },
);

it.each(['2026-01-31', '20260131', '2026-W05-6', 'yesterday'])(
  'the date %s is rejected with forms to use',
  async (date) => {
    const { body } = await request(date);
    expect(body).toMatchObject({
      status: 400,
      pointer: '/date',
      detail: expect.stringContaining('2026-01-31T08:00:00Z'),
    });
    expect(world.platform.arrivals('createSession')).toBe(0);
  },
);

it.each([
  ['GET', '/v1/sessions?updatedSince=20260131', '/updatedSince'],
  ['POST', '/v1/sessions/refreshes', '/since'],
])('%s %s rejects other dates with the form to use', async (method, path, pointer) => {
  const body = method === 'POST' ? { since: '2026-W05-6' } : undefined;
  const answer = await world.call<Problem & { detail: string }>(method, path, { body });
  expect(answer.body).toMatchObject({ status: 400, pointer, detail: expect.stringContaining('2026-01-31T08:00:00Z') });
});
