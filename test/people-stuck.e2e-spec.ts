import type pg from 'pg';
import type { Service } from '../harness/service.js';
import type { Page } from '../src/http/request/page.js';
import type { StuckPerson } from '../src/people/api/people-monitoring.js';
import { ADMIN_KEY } from './support/app.js';
import { NEW_IMPORT } from './support/bulk.js';
import { type Mirror, useMirrors } from './support/service.js';

let sql: pg.Pool;

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;

beforeAll(async () => {
  mirror = await newMirror();
  // Nobody mirrors, so that everybody stays as the test has it.
  service = await mirror.start({ ROLES: 'api' });
  sql = mirror.database.sql;
});

/** A provider, who has been in a state for so many minutes, and what else is set. */
type Case = [externalId: string, state: string, minutes: number, more?: string];

/** Makes all of them, and moves them back in time only then, however long that takes. */
async function providers(cases: Case[]): Promise<void> {
  for (const [externalId] of cases) {
    const body = { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' };
    await service.call('PUT', `/v1/providers/${externalId}`, { body });
  }
  for (const [externalId, state, minutes, more = ''] of cases) {
    await sql.query(
      `UPDATE people SET state = $2::person_state, updated_at = now() - $3 * interval '1 minute' ${more} WHERE external_id = $1`,
      [externalId, state, minutes],
    );
  }
}

test('people are stuck in progress after a quarter of an hour, in review after a day; synced ones never', async () => {
  await sql.query(NEW_IMPORT);
  await providers([
    ['fresh', 'pending', 13],
    ['pending', 'pending', 16],
    ['deleting', 'deleting', 17],
    ['asked', 'needs-review', 23 * 60],
    ['unanswered', 'needs-review', 25 * 60, ", error_code = 'create-unknown'"],
    ['failed', 'failed', 26 * 60],
    // Somebody decided that nothing is to be done.
    ['ignored', 'failed', 27 * 60, ", error_code = 'ignored'"],
    ['synced', 'synced', 90 * 24 * 60],
    // Somebody's pause is no reason to worry.
    ['held', 'pending', 60, ', paused_by_import = (SELECT id FROM imports)'],
  ]);

  const seen: StuckPerson[] = [];
  for (let cursor = ''; ; ) {
    const { status, body } = await service.call<Page<StuckPerson>>('GET', `/v1/people/stuck?limit=3${cursor}`);
    expect(status).toBe(200);
    seen.push(...body.items);
    if (!body.nextCursor) break;
    cursor = `&cursor=${encodeURIComponent(body.nextCursor)}`;
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
  expect(Date.now() - Date.parse(unanswered?.since ?? '')).toBeGreaterThan(24 * 3_600_000);

  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const metrics = await (await fetch(`${service.url}/metrics`, { headers })).text();
  const gauge = (name: string, state: string) =>
    new RegExp(`^notebridge_${name}\\{[^}]*state="${state}"[^}]*\\} (\\d+)$`, 'm').exec(metrics)?.[1];
  expect(
    ['pending', 'deleting', 'needs-review', 'failed', 'synced'].map((state) => [
      state,
      gauge('people', state),
      gauge('people_stuck', state),
    ]),
  ).toEqual([
    ['pending', '3', '1'],
    ['deleting', '1', '1'],
    ['needs-review', '2', '1'],
    ['failed', '2', '1'],
    ['synced', '1', '0'],
  ]);
  expect(metrics).not.toContain('example.org');
});
