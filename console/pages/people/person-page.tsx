import { Link, Redirect } from 'wouter';
import { api, type Schemas } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { useFilters } from '../../parts/filters.js';
import { Head, Section } from '../../parts/layout.js';
import { Loaded, Read, useRead } from '../../parts/read.js';
import { StateOf } from '../../parts/state.js';
import { Moment } from '../../parts/values.js';
import { CallHistory } from './call-history.js';
import { ClientsOf } from './clients-of.js';
import { Known, Wanted } from './compared.js';
import { ExportClient } from './export-client.js';
import { LegalHold, SetLegalHold } from './legal-hold.js';
import { OthersWithEmail } from './other-person.js';
import { useSearched } from './people-search.js';
import { nameOf, type PersonKey, personAddress, whyOf } from './person.js';
import { ResolvePerson } from './resolve-person.js';

type Person = Schemas['PersonResponse'];

const EXPORT_SCOPES = ['people:read', 'sessions:read', 'notes:read'] as const;

/** A person: the desired and the known state, the next step with its reason, and the calls. */
export function PersonPage({ person: { kind, externalId } }: { person: PersonKey }) {
  const params = { path: { externalId } };
  const query = useRead<Person>(['people', kind, 'one', externalId], () =>
    kind === 'client'
      ? api.GET('/v1/clients/{externalId}', { params })
      : api.GET('/v1/providers/{externalId}', { params }),
  );
  const isSearched = useSearched() !== null;
  const [{ from }] = useFilters('from');
  const scopes = useScopes();
  const mayExport = kind === 'client' && EXPORT_SCOPES.every((scope) => scopes.includes(scope));
  const person = query.data;
  // The id of a renamed or merged person answers with the current one.
  if (person && person.externalId !== externalId) return <Redirect to={personAddress(person)} replace />;
  return (
    <>
      <Head
        back={backTo(kind, from === 'review', isSearched)}
        title={
          <>
            {(person && nameOf(person)) || externalId}{' '}
            {person && <StateOf of="personState" state={person.sync.state} />}
          </>
        }
      >
        {person && mayExport && <ExportClient externalId={externalId} />}
        {person && kind === 'client' && <SetLegalHold person={person} />}
        {person && scopes.includes('sessions:read') && (
          <Link href={`/sessions?${new URLSearchParams({ [kind]: externalId })}`}>Sessions</Link>
        )}
        {scopes.includes('admin') && (
          <Link href={`/audit?${new URLSearchParams({ [kind]: externalId })}`}>Audit log</Link>
        )}
      </Head>
      <Loaded query={query}>
        {(shown) => (
          <Read
            name={['people', kind, 'trace', externalId]}
            call={() => api.POST('/v1/people/trace', { body: { kind, externalId } })}
          >
            {(trace) => <Traced person={shown} trace={trace} />}
          </Read>
        )}
      </Loaded>
    </>
  );
}

function backTo(kind: string, isReview: boolean, isSearched: boolean): readonly [href: string, words: string] {
  if (isReview) return [`/review?kind=${kind}`, 'Back to the review'];
  return isSearched ? ['/people', 'Back to the search'] : [`/people?kind=${kind}`, `All ${kind}s`];
}

function Traced({ person, trace }: { person: Person; trace: Schemas['TraceResponse'] }) {
  const { what, why, notBefore } = trace.nextStep;
  const error = whyOf(person.sync.error);
  return (
    <>
      {person.unreadable && (
        <p className="note">
          {`The stored ${person.unreadable.join(', ')} cannot be decrypted. See vault in /health/ready, and check DATA_KEYS.`}
        </p>
      )}
      <Section card title="Next step">
        <p>
          {what !== 'none' ? <code>{what}</code> : trace.choices.length > 0 ? 'Decide below.' : 'None.'} {why}
        </p>
        {notBefore && (
          <p>
            Not before <Moment at={notBefore} exact />.
          </p>
        )}
        {error !== why && <p>{error}</p>}
      </Section>
      {trace.choices.length > 0 && <ResolvePerson person={person} choices={trace.choices} />}
      <div className="cards">
        <Wanted person={person} wanted={trace.wanted} />
        <Known person={person} trace={trace} />
        {person.sync.error?.code === 'email-taken' && <OthersWithEmail person={person} />}
      </div>
      {person.kind === 'client' ? <LegalHold person={person} /> : <ClientsOf provider={person.externalId} />}
      <CallHistory calls={trace.history} />
    </>
  );
}
