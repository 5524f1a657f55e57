import { PrismaService } from '../../src/database/prisma.service.js';
import { DeliveriesService } from '../../src/webhooks/admin/deliveries.service.js';
import { FIRST_PLACE, InboxRepository } from '../../src/webhooks/process/inbox.repository.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const say = (text: string) => process.stderr.write(`${text}\n`);

async function timed(name: string, work: () => Promise<unknown>) {
  const times: number[] = [];
  for (let i = 0; i < 7; i += 1) {
    const began = performance.now();
    await work();
    times.push(Math.round(performance.now() - began));
  }
  say(`${name}: ${times.join(' ')} ms`);
}

test('million', async () => {
  const n = 1_000_000;
  await world.sql(
    `INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index, event_type, subject, state, due_at, received_at, processed_at)
     SELECT int8send(i) || int8send(i), '\\x0102030405060708090a'::bytea, 1700000000000 + i, 0, 'SESSION_CREATED',
       CASE WHEN i % 5 = 0 AND i % 10 = 0 THEN 'busy' ELSE 's-' || (i / 4) END,
       CASE WHEN i % 5 = 0 THEN CASE WHEN i % 1000 = 0 THEN 'failed' ELSE 'received' END WHEN i % 100000 = 1 THEN 'dead' WHEN i % 10000 = 1 THEN 'not-understood' ELSE 'processed' END,
       CASE WHEN i % 5 = 0 THEN now() - interval '1 minute' + i * interval '0.1 ms' END,
       now() - interval '30 days' + i * interval '1 s', CASE WHEN i % 5 <> 0 THEN now() END
     FROM generate_series(1, ${n}) AS i`,
  );
  await world.sql('ANALYZE webhook_deliveries');
  const service = world.get(DeliveriesService);
  const inbox = world.get(InboxRepository);
  for (const state of ['dead', 'not-understood', 'ignored', 'failed', 'received', 'processed'] as const)
    await timed(`list ${state}`, () => service.list({ state, limit: 50 } as never));
  await timed('list', () => service.list({ limit: 50 } as never));
  await timed('dueSubjects', () => inbox.dueSubjects());
  await timed('start busy', () => inbox.start('busy', FIRST_PLACE));
  await timed('start busy late', () => inbox.start('busy', { sentAt: 1_700_000_900_000n, id: 0n }));
  await timed('start one', () => inbox.start('s-25001', FIRST_PLACE));
  await timed('start none', () => inbox.start('nobody', FIRST_PLACE));
  await timed('countPending', () => inbox.countPending());
  await timed('countDead', () => inbox.countDead());
  say(`due: ${(await inbox.dueSubjects()).length} subjects`);
  await timed('holdBack busy', () => inbox.holdBack('busy'));
  await world.sql(
    `UPDATE webhook_deliveries SET due_at = now() + interval '1 minute' WHERE id = (SELECT id FROM webhook_deliveries WHERE subject = 'busy' ORDER BY sent_at LIMIT 1)`,
  );
  await timed('holdBack busy behind a failed one', () => inbox.holdBack('busy'));
  await timed('dry run dead', () => service.replayAll({ state: 'dead', dryRun: true }));
  await timed('dry run processed, one type', () =>
    service.replayAll({ state: 'processed', eventType: 'USER_CREATED', dryRun: true }),
  );
  await timed('dry run failed', () => service.replayAll({ state: 'failed', dryRun: true }));
  const prisma = world.get(PrismaService);
  for (const [name, text] of [
    ['dead', `SELECT id FROM webhook_deliveries WHERE state = $1 ORDER BY id DESC LIMIT 51`],
  ] as const) {
    const rows = await prisma.$queryRawUnsafe<{ 'QUERY PLAN': string }[]>(`EXPLAIN ${text}`, name);
    say(rows.map((row) => row['QUERY PLAN']).join('\n'));
  }
}, 280_000);
