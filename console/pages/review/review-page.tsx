import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { labelOf, wordOf } from '../../api/words.js';
import { Select } from '../../parts/field.js';
import { useFilters } from '../../parts/filters.js';
import { type Column, Head } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { Moment } from '../../parts/values.js';
import { KINDS, keyOf, nameOf, type Person, personAddress, whyOf } from '../people/person.js';
import { ResolveSelection } from './resolve-selection.js';

const STATES = ['needs-review', 'failed'] as const;

/** The inbox of people who need a decision: why, which action is usually right, and one action for many. */
export default function ReviewPage() {
  const [filters, setFilters] = useFilters('kind', 'state');
  const [chosen, setChosen] = useState<readonly Person[]>([]);
  const mayResolve = useScopes().includes('people:write');
  const kind = KINDS.find((known) => known === filters.kind) ?? 'client';
  const state = STATES.find((known) => known === filters.state) ?? 'needs-review';
  const choose = (filter: typeof filters) => {
    setChosen([]);
    setFilters(filter);
  };
  const read = (cursor: string | undefined) => {
    const options = { params: { query: { cursor, state } } };
    return kind === 'client' ? api.GET('/v1/clients', options) : api.GET('/v1/providers', options);
  };
  const columns: Column<Person>[] = [
    [
      'Person',
      (person) => (
        <>
          <Link href={`${personAddress(person)}?from=review`}>{nameOf(person) || person.externalId}</Link>
          <div className="help">{person.externalId}</div>
        </>
      ),
    ],
    [
      'Reason',
      ({ sync: { error } }) => error && <span title={whyOf(error)}>{labelOf('personCode', error.code)}</span>,
      'text',
    ],
    ['Recommended', ({ sync: { error } }) => error && <Recommended code={error.code} />, 'text'],
    ['Since', ({ sync }) => <Moment at={sync.updatedAt} />],
  ];
  return (
    <>
      <Head title="Review" />
      <div className="bar">
        <Select
          label="Kind"
          options={KINDS.map((name) => [name, `${name}s`] as const)}
          value={kind}
          onChange={(value) => choose({ kind: value === 'client' ? '' : value })}
        />
        <Select
          label="State"
          options={STATES.map((name) => [name, labelOf('personState', name)] as const)}
          value={state}
          onChange={(value) => choose({ state: value === 'needs-review' ? '' : value })}
        />
        {mayResolve && <ResolveSelection kind={kind} chosen={chosen} onDone={() => setChosen([])} />}
      </div>
      <List
        name={['people', kind, state]}
        read={read}
        empty={`No ${kind}s ${state === 'failed' ? 'have failed' : 'need a review'}.`}
        caption={`${kind}s to review`}
        keyOf={keyOf}
        columns={mayResolve ? [choiceColumn(chosen, setChosen), ...columns] : columns}
      />
    </>
  );
}

/** The action that is usually right, and when. */
function Recommended({ code }: { code: string }) {
  const word = wordOf('personCode', code);
  if (!word?.action) return null;
  return (
    <>
      <strong>{labelOf('resolveAction', word.action)}</strong>
      <div className="help">{word.why}</div>
    </>
  );
}

/** Lets people be chosen, for one action on all of them. */
function choiceColumn(chosen: readonly Person[], onChange: (chosen: readonly Person[]) => void): Column<Person> {
  const cell = (person: Person) => {
    const others = chosen.filter((one) => keyOf(one) !== keyOf(person));
    return (
      <input
        type="checkbox"
        aria-label={`Choose ${person.externalId}`}
        checked={others.length < chosen.length}
        onChange={({ target }) => onChange(target.checked ? [...others, person] : others)}
      />
    );
  };
  return ['Choose', cell];
}
