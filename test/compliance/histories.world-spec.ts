import { randomUUID } from 'node:crypto';
import { useWorld } from '../world/use-world.js';
import { file, PDF, SUBMIT, submittedJobs } from './submitted-jobs.js';

// An event waits for an answer for at most 20 seconds.
const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' } });
const { onPlatform, post, submitJson, uploadUrl, show, list, resolve, tell, finish, events, unknownJob } =
  submittedJobs(world);

const problem = (type: string) => `urn:notebridge:problem:${type}`;
const later = async (span: '1 s' | '20 s' | '2 min' | '1 h') => {
  await world.advance(span);
  await world.settle();
};

/** A submission that the platform accepted, and whose answer it holds. */
async function held(idempotencyKey?: string) {
  const before = onPlatform().length;
  const calls = world.platform.arrivals(SUBMIT);
  world.platform.hold({ operation: SUBMIT });
  const answering = post([file()], { idempotencyKey });
  await world.untilCalled(SUBMIT, calls);
  return { answering, jobId: onPlatform()[before]?.jobId ?? '' };
}

/** A row as a process left it that was killed after a step. */
async function killed(state: 'Uploading' | 'Submitting'): Promise<string> {
  const id = randomUUID();
  const isSent = state === 'Submitting';
  await world.sql(
    `INSERT INTO compliance_jobs (id, state, call_no, attempted_at, give_up_at)
     VALUES ($1, $2, 1, CASE WHEN $3 THEN now() END, now() + CASE WHEN $3 THEN interval '40 s' ELSE interval '15 min' END)`,
    [id, state, isSent],
  );
  return id;
}

/** What a history leads to. */
interface Ended {
  /** The id of the submission. */
  id: string;
  /** Another id that leads to the same job. */
  alias?: string;
}

/** A history of one submission, until nothing changes any more, and the events that it publishes, in order. */
const HISTORIES: Record<string, { play: () => Promise<Ended>; state: string; published: string[]; calls?: number }> = {
  'an answer, then its event': {
    play: async () => {
      const { body } = await post();
      await finish(body.jobId);
      return body;
    },
    state: 'Completed',
    published: ['completed'],
  },
  'a repeated key, before and after the event': {
    play: async () => {
      const { body } = await post([file()], { idempotencyKey: 'k' });
      await post([file()], { idempotencyKey: 'k' });
      await finish(body.jobId);
      expect((await post([file()], { idempotencyKey: 'k' })).body.id).toBe(body.id);
      return body;
    },
    state: 'Completed',
    published: ['completed'],
  },
  'an event, and within 20 seconds the answer': {
    play: async () => {
      const { answering, jobId } = await held();
      await finish(jobId);
      expect((await list()).items.map((job) => job.state)).toEqual(['Submitting']);
      world.platform.release();
      const { status, body } = await answering;
      expect([status, body.jobId]).toEqual([201, jobId]);
      return body;
    },
    state: 'Completed',
    published: ['completed'],
  },
  'an event, and after 20 seconds the answer': {
    play: async () => {
      const { answering, jobId } = await held();
      await finish(jobId);
      await later('20 s');
      const own = (await events())[0]?.id ?? '';
      world.platform.release();
      const { status, body } = await answering;
      expect([status, body.state, body.files, body.id === own]).toEqual([201, 'Completed', ['file-1'], false]);
      return { ...body, alias: own };
    },
    state: 'Completed',
    published: ['completed', 'merged'],
  },
  'a lost answer, the event, and a link': {
    play: async () => {
      const [job, { jobId }] = await unknownJob('lost');
      await finish(jobId);
      const own = (await events()).at(-1)?.id ?? '';
      expect(await post([file()], { idempotencyKey: 'lost' })).toMatchObject({
        status: 504,
        body: { id: job.id, state: 'Unknown' },
      });
      const linked = await resolve(job.id, { action: 'link', jobId });
      expect([linked.status, linked.body]).toMatchObject([200, { id: job.id, jobId, state: 'Completed' }]);
      const again = await post([file()], { idempotencyKey: 'lost' });
      expect([again.status, again.body.id]).toEqual([201, job.id]);
      return { ...job, alias: own };
    },
    state: 'Completed',
    published: ['needs-review', 'completed', 'merged'],
  },
  'a lost answer, a link, and the event': {
    play: async () => {
      const [job, { jobId }] = await unknownJob();
      await resolve(job.id, { action: 'link', jobId });
      await finish(jobId);
      return job;
    },
    state: 'Completed',
    published: ['needs-review', 'completed'],
  },
  'a lost answer, a mistyped link, the right one, and the event': {
    play: async () => {
      const [job, { jobId }] = await unknownJob();
      await resolve(job.id, { action: 'link', jobId: 'mistyped' });
      await later('20 s');
      expect(await show(job.id)).toMatchObject({
        state: 'Submitted',
        jobId: 'mistyped',
        error: { code: 'maybe-gone' },
      });
      await resolve(job.id, { action: 'link', jobId });
      await finish(jobId);
      return job;
    },
    state: 'Completed',
    published: ['needs-review', 'completed'],
  },
  'a lost answer, and it is abandoned': {
    play: async () => {
      const [job] = await unknownJob();
      expect((await resolve(job.id, { action: 'abandon' })).body).toMatchObject({ state: 'Abandoned', choices: [] });
      expect((await resolve(job.id, { action: 'abandon' })).body.type).toBe(problem('wrong-state'));
      return job;
    },
    state: 'Abandoned',
    published: ['needs-review'],
  },
  'a crash during the upload': {
    play: async () => {
      const id = await killed('Uploading');
      await later('2 min');
      expect((await show(id)).state).toBe('Uploading');
      return { id };
    },
    state: 'Rejected',
    published: ['failed'],
    calls: 0,
  },
  'a crash during the call': {
    play: async () => {
      const id = await killed('Submitting');
      await later('1 s');
      expect((await show(id)).state).toBe('Submitting');
      return { id };
    },
    state: 'Unknown',
    published: ['needs-review'],
    calls: 0,
  },
  'a late answer, after the submission counted as lost': {
    play: async () => {
      const { answering, jobId } = await held();
      // As if its process had stalled.
      await world.sql('UPDATE compliance_jobs SET give_up_at = now()');
      await later('1 s');
      expect((await list()).items.map((job) => job.state)).toEqual(['Unknown']);
      world.platform.release();
      const { status, body } = await answering;
      expect([status, body.jobId]).toEqual([201, jobId]);
      await finish(jobId);
      return body;
    },
    state: 'Completed',
    published: ['needs-review', 'completed'],
  },
};

test.each(Object.entries(HISTORIES))(
  '%s: one job, one result, each end published once, and one submission',
  async (_name, { play, state, published, calls = 1 }) => {
    const { id, alias = id } = await play();
    await later('1 h');
    await later('1 h');
    const job = await show(id);
    expect([job.id, job.state]).toEqual([id, state]);
    expect(job.result !== null).toBe(state === 'Completed');
    expect(await show(alias)).toEqual(job);
    expect(job.jobId === null || (await show(job.jobId)).id === id).toBe(true);
    expect((await list()).items.map((each) => each.id)).toEqual([id]);
    const types = () => events().then((all) => all.map(({ type }) => type.replace('compliance.', '')));
    expect(await types()).toEqual(published);
    expect(world.platform.arrivals(SUBMIT)).toBe(calls);
    if (job.jobId !== null) tell('COMPLIANCE_JOB_COMPLETED', job.jobId);
    await later('1 h');
    expect(await types()).toEqual(published);
    expect(await show(id)).toMatchObject({ state, jobId: job.jobId });
  },
);

test('a merge says which id leads to the job, and the feed finds the events of both', async () => {
  const [job, { jobId }] = await unknownJob();
  await finish(jobId);
  const own = (await events()).at(-1)?.id ?? '';
  await resolve(job.id, { action: 'link', jobId });
  const merged = (await events()).at(-1);
  expect(merged).toMatchObject({ id: job.id, data: { jobId, state: 'Completed', id: own, into: job.id } });
  for (const id of [own, job.id]) {
    const { body } = await world.call<{ items: object[] }>('GET', `/v1/events?subject=compliance/jobs/${id}`);
    expect(body.items).toHaveLength(3);
  }
});

test('a refusal is answered if the removal of its row was committed without an answer', async () => {
  // As if an earlier try had committed it.
  await world.sql(`CREATE FUNCTION vanish() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN DELETE FROM compliance_jobs WHERE id = NEW.id; RETURN NULL; END $$`);
  await world.sql(`CREATE TRIGGER vanish AFTER UPDATE ON compliance_jobs FOR EACH ROW
    WHEN (NEW.state = 'Submitting') EXECUTE FUNCTION vanish()`);
  world.platform.injectFault({ operation: SUBMIT, kind: 'rate-limit' });
  const { status, body } = await post();
  await world.sql('DROP FUNCTION vanish CASCADE');
  expect([status, body.type]).toEqual([503, problem('platform-rate-limited')]);
});

test('of two runs of a request only one submits, although the first row was removed in between', async () => {
  const UPLOAD = 'complianceUploadUrl';
  const send = () => post([file()], { idempotencyKey: 'stalled' });
  const begin = async () => {
    const calls = world.platform.arrivals(UPLOAD);
    world.platform.hold({ operation: UPLOAD });
    const answering = send();
    await world.untilCalled(UPLOAD, calls);
    return { answering };
  };
  const first = await begin();
  // As if its process had stalled.
  await world.sql('UPDATE idempotency_records SET lease_until = now()');
  world.platform.injectFault({ operation: UPLOAD, kind: 'refuse' });
  expect((await send()).status).toBe(502);
  const last = await begin();
  world.platform.release();
  world.platform.hold({ operation: SUBMIT });
  expect(await first.answering).toMatchObject({ status: 409, body: { type: problem('not-submitted') } });
  world.platform.release();
  expect((await last.answering).status).toBe(201);
  expect((await send()).body.id).toBe((await last.answering).body.id);
  expect(onPlatform()).toHaveLength(1);
});

test('a submission that counted as lost stays, for its decision, after an answer that nothing happened', async () => {
  const { uploadUrl: target, url, method, headers } = await uploadUrl();
  await fetch(target, { method, headers, body: PDF });
  world.platform.set({ latencyMs: [30_000, 30_000] });
  world.platform.injectFault({ operation: SUBMIT, kind: 'rate-limit' });
  const answering = submitJson({ files: [{ id: 'a', url }] });
  const id = await world.eventually('it is sent', async () => (await list('state=Submitting')).items[0]?.id);
  // As if its process had stalled.
  await world.sql('UPDATE compliance_jobs SET give_up_at = now()');
  await later('1 s');
  await world.advance('30 s');
  const { status, body } = await answering;
  expect([status, body.id, body.state]).toEqual([504, id, 'Unknown']);
  expect((await resolve(id, { action: 'abandon' })).status).toBe(200);
});

test('an event of another, known job does not wait for a submission in flight', async () => {
  const { body: other } = await post();
  const { answering } = await held();
  await finish(other.jobId);
  expect((await show(other.id)).state).toBe('Completed');
  world.platform.release();
  await answering;
});

test('a job is not linked to the job of another submission, and one without trouble is not resolved', async () => {
  const { body } = await post();
  const [job] = await unknownJob();
  const answers = [
    await resolve(body.id, { action: 'abandon' }),
    await resolve(job.id, { action: 'link', jobId: body.jobId }),
    await resolve(job.id, { action: 'link' }),
    await resolve(job.id, { action: 'link', jobId: 7 }),
    await resolve(job.id, { action: 'create' }),
  ];
  expect(answers.map((answer) => [answer.status, answer.body.type])).toEqual([
    [409, problem('wrong-state')],
    [409, problem('job-taken')],
    [400, problem('validation')],
    [400, problem('validation')],
    [400, problem('validation')],
  ]);
});

test('the decision that a lost answer needs is counted, listed and explained', async () => {
  const [job] = await unknownJob();
  expect([job.error?.code, job.choices.map(({ action }) => action)]).toEqual([
    'submission-unknown',
    ['link', 'abandon'],
  ]);
  expect((await list('review=submission-unknown')).items.map(({ id }) => id)).toEqual([job.id]);
  const metrics = await world.call('GET', '/metrics');
  expect(metrics.text).toContain('notebridge_awaiting_decision{kind="compliance-unknown"} 1');
});
