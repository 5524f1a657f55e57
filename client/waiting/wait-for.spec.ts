import type { Methods } from '../methods.js';
import { waitFor } from './wait-for.js';

/** A service whose session fails after it had notes. */
const failing = {
  state: 'Error',
  error: { code: 'failed', message: 'The platform failed.' },
  ...{ goneAt: null, notesRevision: 1, aiNotesEnabled: true, aiNotesFinal: false },
};
const GET = async (path: string) => ({ data: path === '/v1/events' ? { cursor: '1-1', items: [] } : failing });
const methods = { GET } as unknown as Methods;

test('a session that fails after it had notes ends a wait with until', async () => {
  const waiting = waitFor(methods, 'session', '3f', { until: ({ state }) => state === 'Done' });
  await expect(waiting).rejects.toMatchObject({
    type: 'bad-end',
    message: 'The platform failed.',
    more: { state: 'Error', code: 'failed', resource: failing },
  });
});

test('without until, it has its notes', async () => {
  expect(await waitFor(methods, 'session', '3f', {})).toBe(failing);
});

test('until may take a bad end for a good one', async () => {
  expect(await waitFor(methods, 'session', '3f', { until: ({ state }) => state === 'Error' })).toBe(failing);
});

test.each(['{}', 'null', '[]'])('waitFor names a service that answers with %s', async (body) => {
  const service = { GET: async () => ({ data: JSON.parse(body) }) } as unknown as Methods;
  for (const kind of ['client', 'import', 'compliance-job'] as const)
    await expect(waitFor(service, kind, '1', {})).rejects.toMatchObject({
      type: 'unreadable-answer',
      message: expect.stringContaining('url'),
    });
});

test.each(['sessions', 'toString'])('waitFor rejects the kind %s and lists the kinds', async (kind) => {
  const waiting = waitFor(methods, kind as 'session', '3f', {});
  await expect(waiting).rejects.toThrow(TypeError);
  await expect(waiting).rejects.toThrow('provider, client, session, import, compliance-job');
});
