import { JobsRepository } from '../../src/compliance/jobs.repository.js';
import { Database } from '../../src/database/database.js';
import { useWorld } from '../world/use-world.js';
import { SUBMIT, submittedJobs } from './submitted-jobs.js';

const world = useWorld();
const { onPlatform, post, submitJson, uploadUrl, show, resolve, unknownJob } = submittedJobs(world);

const lostConnection = () => Object.assign(new Error('Connection terminated'), { code: 'ECONNRESET' });

/** Makes each statement of the service fail. @returns ends that */
function loseDatabase(): () => void {
  const { pool } = world.get(Database);
  const failing = (['query', 'connect'] as const).map((name) =>
    jest.spyOn(pool, name).mockImplementation(() => Promise.reject(lostConnection())),
  );
  return () => {
    for (const each of failing) each.mockRestore();
  };
}

describe('a database that is unavailable when the platform answers a submission', () => {
  test('for longer than a caller waits: each gets an answer, and the outcome is stored later', async () => {
    const [unknown] = await unknownJob();
    const { url } = await uploadUrl(); // without an upload the platform rejects the job
    const before = [onPlatform().length, world.platform.arrivals(SUBMIT)] as const;
    for (let calls = 0; calls < 3; calls += 1) world.platform.hold({ operation: SUBMIT });
    const submitting = post(undefined, { idempotencyKey: 'held-1' });
    await world.untilCalled(SUBMIT, before[1]);
    const resolving = resolve(unknown.id, { action: 'create' });
    await world.untilCalled(SUBMIT, before[1] + 1);
    const rejecting = submitJson({ files: [{ id: 'a', url }] });
    await world.untilCalled(SUBMIT, before[1] + 2);
    const restore = loseDatabase();
    world.platform.release();
    const [submitted, resolved, rejected] = await Promise.all([submitting, resolving, rejecting]);
    restore();

    expect([submitted.status, submitted.body]).toMatchObject([202, { state: 'Requested', jobId: null, error: null }]);
    expect(submitted.headers.get('location')).toBe(`/v1/compliance/jobs/${submitted.body.id}`);
    expect([resolved.status, resolved.body]).toMatchObject([200, { id: unknown.id, state: 'Requested', jobId: null }]);
    expect([rejected.status, rejected.body.type]).toEqual([400, 'urn:notebridge:problem:platform-rejected']);

    const open = `SELECT 1 FROM compliance_jobs WHERE state = 'Requested'`;
    await world.eventually('each outcome is stored', async () => (await world.sql(open)).length === 0);
    expect(await world.sql('SELECT state FROM compliance_jobs ORDER BY state')).toEqual(
      ['Rejected', 'Submitted', 'Submitted'].map((state) => ({ state })),
    );
    await world.advance('1 min'); // the key's lease ends, as after a crash
    const again = await post(undefined, { idempotencyKey: 'held-1' });
    expect([again.status, again.body.id]).toEqual([201, submitted.body.id]);
    expect(onPlatform()).toHaveLength(before[0] + 2);
  });

  test('for a moment: the caller notices nothing', async () => {
    world.platform.hold({ operation: SUBMIT });
    const answering = post();
    await world.untilCalled(SUBMIT);
    const storing = jest.spyOn(world.get(JobsRepository), 'accepted');
    const restore = loseDatabase();
    world.platform.release();
    await world.eventually('storing the outcome failed', () => storing.mock.calls.length > 1);
    restore();
    const { status, body } = await answering;
    expect([status, body.state, body.jobId]).toEqual([201, 'Submitted', onPlatform()[0]?.jobId]);
  });
});

test.each(['begin', 'accepted'] as const)('a lost confirmation of the commit of "%s" repeats nothing', async (step) => {
  const jobs = world.get(JobsRepository);
  const commit = (jobs[step] as (...given: unknown[]) => Promise<unknown>).bind(jobs);
  const committing = jest.spyOn(jobs, step).mockImplementationOnce(async (...given: unknown[]) => {
    await commit(...given);
    throw lostConnection();
  });
  const { status, body } = await post();
  expect(committing).toHaveBeenCalledTimes(2);
  expect([status, body.state, onPlatform().map(({ jobId }) => jobId)]).toEqual([201, 'Submitted', [body.jobId]]);
  expect(await world.sql('SELECT id FROM compliance_jobs')).toEqual([{ id: body.id }]);
  expect(await show(body.id)).toEqual(body);
});
