import { api, type Schemas } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { Choices } from '../../parts/choices.js';
import { Field } from '../../parts/field.js';
import { Facts, Head, Section } from '../../parts/layout.js';
import { LacksScope, NotShown } from '../../parts/notes.js';
import { Loaded, useRead } from '../../parts/read.js';
import { StateOf } from '../../parts/state.js';
import { Copyable, Moment } from '../../parts/values.js';
import { AnyValue, RawValue } from '../sessions/content/any-value.js';

type Job = Schemas['ComplianceJobResponse'];
type Action = Job['choices'][number]['action'];

const LABELS: Record<Action, string> = { link: 'Link', abandon: 'Abandon job' };

/** One job: its facts, the ways to resolve it, and its result. */
export function JobDetail({ id }: { id: string }) {
  const query = useRead<Job>(['compliance', 'one', id], () =>
    api.GET('/v1/compliance/jobs/{id}', { params: { path: { id } } }),
  );
  return (
    <>
      <Head back={['/compliance', 'All compliance jobs']} title="Compliance job" />
      <Loaded query={query}>
        {(job) => (
          <>
            <JobFacts job={job} />
            {job.choices.length > 0 && <ResolveJob job={job} />}
            <Section card title="Result">
              <Result job={job} />
            </Section>
          </>
        )}
      </Loaded>
    </>
  );
}

function JobFacts({ job }: { job: Job }) {
  const { id, jobId, state, error, platformMessage, files, createdAt, updatedAt, unreadable } = job;
  return (
    <section className="card" aria-label="Facts">
      <p>
        <StateOf of="complianceState" state={state} /> {error?.message}
      </p>
      {platformMessage && (
        <p>
          <strong>The platform said:</strong> {platformMessage}
        </p>
      )}
      <NotShown parts={unreadable} />
      <Facts
        facts={{
          Created: <Moment at={createdAt} exact />,
          Changed: <Moment at={updatedAt} exact />,
          Files: files.join(', '),
          Id: <Copyable text={id} name="the id" />,
          'Id on the platform': jobId && <Copyable text={jobId} name="the platform’s id" />,
        }}
      />
    </section>
  );
}

/** The result as the platform returned it: the specification does not show its form. */
function Result({ job: { result, removedAt, unreadable } }: { job: Job }) {
  if (!useScopes().includes('notes:read')) return <LacksScope scope="notes:read" />;
  if (removedAt)
    return (
      <p className="quiet">
        Files and result were removed on <Moment at={removedAt} exact />.
      </p>
    );
  if (unreadable?.includes('result'))
    return <p className="quiet">The stored result cannot be decrypted: ask an operator.</p>;
  if (result == null) return <p className="quiet">There is no result yet.</p>;
  return (
    <>
      <AnyValue value={result} />
      <RawValue value={result} />
    </>
  );
}

function ResolveJob({ job: { id, choices } }: { job: Job }) {
  const resolve = (action: Action, given: FormData) => {
    const jobId = given.get('jobId')?.toString().trim();
    return api.POST('/v1/compliance/jobs/{id}/resolve', { params: { path: { id } }, body: { action, jobId } });
  };
  return (
    <Section card title="Resolve this job">
      <Choices
        what="the compliance job"
        choices={choices}
        labels={LABELS}
        scope="compliance"
        dangerous="abandon"
        fields={{ link: JOB_TO_LINK }}
        run={resolve}
      />
    </Section>
  );
}

const JOB_TO_LINK = (
  <Field
    label="Id of the job on the platform"
    name="jobId"
    required
    pattern=".*\S.*"
    title="The job’s id on the platform"
    maxLength={512}
  />
);
