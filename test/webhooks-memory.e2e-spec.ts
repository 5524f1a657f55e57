import { until } from '../harness/until.js';
import { WEBHOOK_SECRET } from './support/app.js';
import { useMirrors } from './support/service.js';
import { deliver, signed } from './support/webhook-requests.js';

/** Bytes of a delivery, under the receiver's limit of 5 MiB. */
const SIZE = 4_900_000;
const DELIVERIES = 12;

/** MiB of heap: enough for one such body as JSON, not for several. */
const HEAP = 256;

const newMirror = useMirrors();

/** An event whose JSON takes much more memory than its text. */
function largeEvent(session: string): string {
  const event = { eventType: 'SESSION_CREATED', sessionId: session, providerUserId: 'p-1', padding: '' };
  const items = Array.from({ length: Math.floor(SIZE / 3) }, () => '{}').join(',');
  return JSON.stringify(event).replace('""', `[${items}]`);
}

test('a dozen of the largest deliveries are processed in a small heap, one at a time', async () => {
  const mirror = await newMirror();
  const receiver = await mirror.start({ ROLES: 'api' });
  for (let n = 0; n < DELIVERIES; n += 1) {
    const { status } = await deliver(receiver, signed(largeEvent(`s-${n}`), { secret: WEBHOOK_SECRET }));
    expect(status).toBe(204);
  }
  const worker = await mirror.start({ ROLES: 'worker', NODE_OPTIONS: `--max-old-space-size=${HEAP}` });
  const states = () => mirror.sql<{ state: string }>('SELECT DISTINCT state::text FROM webhook_deliveries');
  await until('all are processed', async () => {
    expect(worker.output()).not.toMatch(/heap out of memory/);
    return (await states()).every(({ state }) => state === 'processed');
  });
});

test('deliveries that a killed process had in hand leave their marks, and are all processed afterwards', async () => {
  const mirror = await newMirror();
  // The work of one delivery does not come to its end, so that the kill meets its batch; a statement has ten seconds.
  await mirror.sql(`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN IF NEW.session_id LIKE 'hangs-%' THEN PERFORM pg_sleep(5); END IF; RETURN NEW; END $$`);
  await mirror.sql('CREATE TRIGGER hang BEFORE INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION hang()');
  const receiver = await mirror.start({ ROLES: 'api' });
  const event = (sessionId: string) => JSON.stringify({ eventType: 'SESSION_CREATED', sessionId, providerUserId: 'p' });
  const marks = () => mirror.sql<{ alone: boolean }>('SELECT alone FROM webhook_claims');
  const open = () => mirror.sql("SELECT 1 FROM webhook_deliveries WHERE state <> 'processed'");
  // Again, where a stalled machine looked only when the batch had come to its end.
  for (let round = 0; (await open()).length === 0; round += 1) {
    for (const session of ['a', 'hangs', 'b']) {
      await deliver(receiver, signed(event(`${session}-${round}`), { secret: WEBHOOK_SECRET }));
    }
    const worker = await mirror.start({ ROLES: 'worker' });
    await until('they are in hand', async () => (await marks()).length === 3 || (await open()).length === 0);
    await worker.kill('SIGKILL');
  }
  expect(await marks()).toEqual([{ alone: false }, { alone: false }, { alone: false }]);

  await mirror.sql('DROP TRIGGER hang ON sessions');
  await mirror.start({ ROLES: 'worker' });
  await until('all are processed', async () => (await open()).length === 0);
  expect(await marks()).toEqual([]);
});
