import type { Span } from '../../harness/world/time.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import type { Page } from '../../src/http/request/page.js';
import type { StuckPersonResponse } from '../../src/people/api/person-view.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { begin } = peopleOf(world);

/** People in the order of their creation, each with the time that passes afterwards. */
const CASES: [externalId: string, state: string, code: string | null, then: Span][] = [
  ['synced', 'synced', null, '90 d'],
  ['ignored', 'failed', 'ignored', '1 h'],
  ['failed', 'failed', null, '1 h'],
  ['unanswered', 'needs-review', 'create-unknown', '2 h'],
  ['asked', 'needs-review', null, '23 h'],
  ['deleting', 'deleting', null, '1 min'],
  ['pending', 'pending', null, '3 min'],
  ['fresh', 'pending', null, '13 min'],
];

test('people are stuck after 15 minutes in progress, or after a day in need of review', async () => {
  for (const [externalId, state, code, then] of CASES) {
    await begin(`providers/${externalId}`);
    await world.sql(`UPDATE people SET state = $2, error_code = $3 WHERE external_id = $1`, [externalId, state, code]);
    await world.advance(then);
  }

  const seen: StuckPersonResponse[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body }: { body: Page<StuckPersonResponse> } = await world.call('GET', `/v1/people/stuck?limit=3${cursor}`);
    seen.push(...body.items);
    cursor = body.nextCursor && `&cursor=${encodeURIComponent(body.nextCursor)}`;
  }
  expect(seen.map(({ externalId, state }) => [externalId, state])).toEqual([
    ['failed', 'failed'],
    ['unanswered', 'needs-review'],
    ['deleting', 'deleting'],
    ['pending', 'pending'],
  ]);
  const [, unanswered] = seen;
  expect(unanswered).toMatchObject({ kind: 'provider', code: 'create-unknown' });
  expect(Math.round((unanswered?.ageSeconds ?? 0) / 3_600)).toBe(25);
  expect(world.now().getTime() - Date.parse(unanswered?.since ?? '')).toBeGreaterThan(25 * 3_600_000);

  const { text } = await world.call('GET', '/metrics');
  const gauge = (name: string, state: string) =>
    new RegExp(`^notebridge_${name}\\{[^}]*kind="provider",state="${state}"[^}]*\\} (\\d+)$`, 'm').exec(text)?.[1];
  const states = ['pending', 'deleting', 'needs-review', 'failed', 'synced'];
  expect(states.map((state) => [state, gauge('people', state), gauge('people_stuck', state)])).toEqual([
    ['pending', '2', '1'],
    ['deleting', '1', '1'],
    ['needs-review', '2', '1'],
    ['failed', '2', '1'],
    ['synced', '1', '0'],
  ]);
  expect(text).not.toContain('example.org');
});

test('a slow count that fails hides no metric from the next reading', async () => {
  const people = async () => /^notebridge_people\{/m.test((await world.call('GET', '/metrics')).text);
  const failing = jest.spyOn(world.get(PrismaService), '$queryRawUnsafe').mockImplementation((async () => {
    await world.advance('10 s');
    throw new Error('timeout');
  }) as never);
  await people();
  failing.mockRestore();
  expect(await people()).toBe(true);
});
