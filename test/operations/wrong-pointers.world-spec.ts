import { Clock } from '../../src/config/clock.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { UnreadableAnswers } from '../../src/platform/http/unreadable-answers.repository.js';
import { contractFile } from '../support/contract-file.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const platform = async () => (await world.call<HealthReport>('GET', '/health/ready')).body.checks.platform;
const FAULT = 'createProvider, no id at /data/userId, found nothing (the top is an object without it)';

test('a wrong pointer is named in health and on the person, until an answer is readable', async () => {
  const response = { userId: '/data/userId' };
  await world.restart({ PLATFORM_CONTRACT: contractFile([], { createProvider: { response } }) });
  const body = { email: 'pia@example.org', firstName: 'Pia', lastName: 'Ruiz' };
  await world.call('PUT', '/v1/providers/p-1', { body });
  await world.settle();
  expect(await platform()).toMatchObject({
    status: 'degraded',
    reason: expect.stringMatching(
      /unreadable, .*: createProvider, no id at \/data\/userId, found nothing.*contract check/,
    ),
  });
  const { sync } = (await world.call<PersonResponse>('GET', '/v1/providers/p-1')).body;
  expect(sync.error).toMatchObject({ message: expect.stringContaining(`Cause: ${FAULT}.`) });
  const page = (await world.call<{ items: PersonResponse[] }>('GET', '/v1/providers')).body.items;
  expect(page[0]?.sync.error).toEqual(sync.error);

  await world.restart({ PLATFORM_CONTRACT: contractFile() });
  expect((await platform())?.status).toBe('degraded');
  await world.advance('20 min');
  await world.settle();
  await world.call('PUT', '/v1/providers/p-2', { body: { ...body, email: 'ana@example.org' }, wait: 60 });
  expect(await platform()).toMatchObject({ status: 'ok' });
});

test('what a process has named that is gone is removed within ten seconds by the readable answers of another one', async () => {
  const put = async (id: string) => {
    const body = { email: `${id}@example.org`, firstName: 'Pia', lastName: 'Ruiz' };
    await world.call('PUT', `/v1/providers/${id}`, { body, wait: 60 });
  };
  await put('p-1');
  const gone = new UnreadableAnswers(world.get(PrismaService), world.get(Clock));
  await gone.note('createProvider', 'no id');
  expect(await platform()).toMatchObject({ status: 'degraded' });
  await world.advance('10 s');
  await put('p-2');
  expect(await platform()).toMatchObject({ status: 'ok' });
});
