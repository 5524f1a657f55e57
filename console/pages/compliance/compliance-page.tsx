import { useRoute } from 'wouter';
import { api } from '../../api/client.js';
import { FilterForm, useFilters } from '../../parts/filters.js';
import { Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { JOB, StateOf, wordIn, wordsOf } from '../../parts/state.js';
import { IdLink, Moment, number } from '../../parts/values.js';
import { JobDetail } from './job-detail.js';

/** The decisions that a job can await. */
const REVIEWS = ['submission-unknown', 'result-unreadable'] as const;

const FIELDS = [
  { name: 'state', label: 'State', options: wordsOf(JOB), of: 'complianceState' },
  { name: 'review', label: 'Needs attention', options: REVIEWS, of: 'complianceReview' },
] as const;

/** Checks of PDFs on the platform. */
export default function CompliancePage() {
  const [, params] = useRoute<{ id: string }>('/compliance/:id');
  return params ? <JobDetail key={params.id} id={params.id} /> : <Jobs />;
}

/** Jobs, newest first. */
function Jobs() {
  const [filters, setFilters] = useFilters(...FIELDS.map(({ name }) => name));
  const query = { state: wordIn(JOB, filters.state), review: REVIEWS.find((review) => review === filters.review) };
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <Head title="Compliance jobs" />
      <FilterForm fields={FIELDS} filters={filters} onChange={setFilters} />
      <List
        name={['compliance', query]}
        read={(cursor) => api.GET('/v1/compliance/jobs', { params: { query: { ...query, cursor } } })}
        empty={
          isFiltered
            ? 'No job matches the filters.'
            : 'There are no jobs yet. They appear when the EHR submits PDFs, or when the platform’s webhooks report a job.'
        }
        caption="Compliance jobs, newest first"
        keyOf={({ id }) => id}
        columns={[
          ['Job', ({ id }) => <IdLink href={`/compliance/${id}`} id={id} />],
          ['State', ({ state }) => <StateOf of="complianceState" state={state} />],
          ['Reason', ({ error }) => error?.message, 'text'],
          ['Files', ({ files }) => files.length > 0 && number(files.length), 'number'],
          ['Created', ({ createdAt }) => <Moment at={createdAt} exact />],
          ['Changed', ({ updatedAt }) => <Moment at={updatedAt} />],
        ]}
      />
    </>
  );
}
