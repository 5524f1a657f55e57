import { finishJob } from '../../simulator/compliance/compliance-routes.js';
import { contractFile } from '../support/contract-file.js';
import { useWorld } from '../world/use-world.js';
import { submittedJobs } from './submitted-jobs.js';

const LOOK_UP = 'getComplianceJob';
const world = useWorld();
const { platformJob, post, show, list, resolve, tell, finish, events, unknownJob } = submittedJobs(world);

const later = async (span: '5 s' | '2 min' | '1 h') => {
  await world.advance(span);
  await world.settle();
};
const types = async () => (await events()).map(({ type }) => type.replace('compliance.', ''));
const failLookups = (status: number, count: number | null = null) =>
  world.platform.injectFault({ operation: LOOK_UP, kind: 'status', status, count });

/** A job whose first lookup failed, and whose second one the platform holds. */
async function heldLookup() {
  const { body } = await post();
  failLookups(500, 1);
  await finish(body.jobId);
  await world.advance('5 s');
  return { job: body, held: await world.untilHeld({ operation: LOOK_UP }) };
}

/** A job that only an event has named, and which the platform does not know. */
async function unknownToPlatform(jobId: string): Promise<string> {
  tell('COMPLIANCE_JOB_COMPLETED', jobId);
  await world.settle();
  return (await show(jobId)).id;
}

test('a job that is abandoned during a lookup stays abandoned', async () => {
  const { job, held } = await heldLookup();
  expect((await resolve(job.id, { action: 'abandon' })).status).toBe(200);
  await held.answer();
  await later('1 h');
  expect(await show(job.id)).toMatchObject({ state: 'Abandoned', result: null });
  expect(await events()).toEqual([]);
});

test('a job that is linked to another during a lookup gets the result of that one', async () => {
  const { job, held } = await heldLookup();
  world.platform.simulator.state.complianceJobs.set('other', { ...platformJob(job.jobId), jobId: 'other' });
  expect((await resolve(job.id, { action: 'link', jobId: 'other' })).status).toBe(200);
  await held.answer();
  await later('5 s');
  expect(await show(job.id)).toMatchObject({ state: 'Completed', jobId: 'other', result: { jobId: 'other' } });
  expect(await types()).toEqual(['completed']);
});

test('a job that is merged during a lookup is announced once', async () => {
  const [job, onPlatform] = await unknownJob();
  const finished = async () => finishJob(world.platform.simulator.state, onPlatform);
  const held = await world.untilHeld({ operation: LOOK_UP }, finished);
  const own = (await show(onPlatform.jobId)).id;
  await resolve(job.id, { action: 'link', jobId: onPlatform.jobId });
  await held.answer();
  await later('5 s');
  expect(await types()).toEqual(['needs-review', 'merged', 'completed']);
  expect((await events()).at(-1)?.id).toBe(job.id);
  expect(await show(own)).toMatchObject({ id: job.id, state: 'Completed', result: { jobId: onPlatform.jobId } });
});

test('every id that a job has had leads to it, also after two merges', async () => {
  const [first, second] = [await unknownToPlatform('a'), await unknownToPlatform('b')];
  await resolve(first, { action: 'link', jobId: 'b' });
  expect((await show(second)).id).toBe(first);
  const [job] = await unknownJob();
  await resolve(job.id, { action: 'link', jobId: 'b' });
  for (const id of [first, second]) expect(await show(id)).toMatchObject({ id: job.id, jobId: 'b' });
  expect((await list()).items.map(({ id }) => id)).toEqual([job.id]);
  const { body } = await world.call<{ items: object[] }>('GET', `/v1/events?subject=compliance/jobs/${second}`);
  expect(body.items).toHaveLength(3);
});

test.each([
  ['an abandoned job', async (id: string) => void (await resolve(id, { action: 'abandon' }))],
  ['a job whose lookups have ended', async () => void [await later('1 h'), await later('1 h')]],
])('a submission that is linked to %s is looked up', async (_rule, before) => {
  const [job, { jobId }] = await unknownJob();
  failLookups(404);
  await finish(jobId);
  await before((await show(jobId)).id);
  world.platform.release();
  await resolve(job.id, { action: 'link', jobId });
  await later('5 s');
  expect(await show(job.id)).toMatchObject({ state: 'Completed', error: null, result: { jobId } });
  expect((await types()).filter((type) => type === 'completed')).toHaveLength(1);
});

test('a submission that is linked to a job with a damaged result reads it again', async () => {
  const [job, { jobId }] = await unknownJob();
  await finish(jobId);
  await world.sql(`UPDATE compliance_jobs SET result = result || '\\x00'`);
  await resolve(job.id, { action: 'link', jobId });
  await later('5 s');
  expect(await show(job.id)).toMatchObject({ state: 'Completed', result: { jobId } });
  expect(await types()).toEqual(['needs-review', 'completed', 'merged']);
});

test('without states in the contract, an unreadable result that is linked again is looked up, and not announced again', async () => {
  await world.restart({ PLATFORM_CONTRACT: contractFile([LOOK_UP]) });
  const { body } = await post();
  failLookups(500);
  await finish(body.jobId);
  for (let hours = 0; hours < 2; hours += 1) await later('1 h');
  expect(await types()).toEqual(['completed', 'needs-review']);
  world.platform.release();
  await resolve(body.id, { action: 'link', jobId: body.jobId });
  await later('2 min');
  expect(await show(body.id)).toMatchObject({ state: 'Completed', error: null, result: { jobId: body.jobId } });
  expect(await types()).toEqual(['completed', 'needs-review']);
});
