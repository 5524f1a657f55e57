import type { ReactNode } from 'react';
import { DataTable } from '../../../parts/layout.js';
import { Moment } from '../../../parts/values.js';
import type { PersonKey } from '../../people/person.js';
import { PersonLink } from '../../people/person-link.js';
import { AnyValue, RawValue } from './any-value.js';
import { clock, type Figure, inWords, type Measure, measuresOf, restOf } from './measures.js';

/** People by speaker label or by the platform's user id. */
export type PeopleByKey = Readonly<Record<string, PersonKey>>;

/** Insights as the API returns them. Their parts have any form, because the platform returns them. */
export interface SessionInsights {
  topics: unknown;
  namedEntities: unknown;
  analyticsSummary: unknown;
  people: PeopleByKey;
  removedAt: string | null;
}

/** The insights of a session: measures by person, topics, named entities, and all else that the platform returned. */
export function Insights({ insights }: { insights: SessionInsights }) {
  const { topics, namedEntities, analyticsSummary, people, removedAt } = insights;
  const isEmpty = [topics, namedEntities, analyticsSummary].every((part) => part === null);
  if (isEmpty)
    return (
      <p className="quiet">
        {removedAt ? (
          <>
            The insights were removed on <Moment at={removedAt} exact />.
          </>
        ) : (
          'The platform has returned no insights.'
        )}
      </p>
    );
  const { measures, rest } = measuresOf(analyticsSummary);
  return (
    <div className="insights">
      {measures.map((measure) => (
        <Part key={measure.name} title={measure.title}>
          <MeasureTable measure={measure} people={people} />
        </Part>
      ))}
      {Object.keys(rest).length > 0 && (
        <Part title="Other measures">
          <AnyValue value={rest} />
        </Part>
      )}
      {topics !== null && (
        <Part title="Topics">
          <Items items={topics} title="headline" text="gist" />
        </Part>
      )}
      {namedEntities !== null && (
        <Part title="Named entities">
          <Items items={namedEntities} title="name" text="summary" kind="entityType" />
        </Part>
      )}
      <RawValue value={{ topics, namedEntities, analyticsSummary }} />
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function MeasureTable({ measure: { title, columns, rows }, people }: { measure: Measure; people: PeopleByKey }) {
  return (
    <DataTable
      caption={title}
      rows={rows}
      keyOf={({ user }) => user}
      columns={[
        ['Person', ({ user }) => <User user={user} people={people} />],
        ...columns.map(
          ({ field, label }) =>
            [
              label,
              ({ figures }: Measure['rows'][number]) => <FigureShown figure={figures.get(field)} />,
              'number',
            ] as const,
        ),
      ]}
    />
  );
}

function User({ user, people }: { user: string; people: PeopleByKey }) {
  const person = people[user];
  return person ? <PersonLink person={person} /> : <code>{user}</code>;
}

/** A figure, with a bar if it is a part of a whole. The bar only repeats it. */
function FigureShown({ figure }: { figure: Figure | undefined }) {
  if (figure?.text === undefined) return null;
  return (
    <>
      {figure.text}
      {figure.share !== undefined && <meter className="share" aria-hidden="true" value={figure.share} />}
    </>
  );
}

/**
 * Topics or named entities. Items of another form are shown as they are.
 *
 * @param title the member that names an item; `text` and `kind` describe it
 */
function Items({ items, title, text, kind }: { items: unknown; title: string; text: string; kind?: string }) {
  if (!Array.isArray(items)) return <AnyValue value={items} />;
  if (items.length === 0) return <p className="quiet">None.</p>;
  return (
    <ol className="plain items">
      {items.map((item: unknown, at) => (
        <li key={at}>
          <Item item={item} title={title} text={text} kind={kind} />
        </li>
      ))}
    </ol>
  );
}

function Item(props: { item: unknown; title: string; text: string; kind: string | undefined }) {
  const { item, title, text, kind } = props;
  if (typeof item !== 'object' || item === null) return <AnyValue value={item} />;
  const { start, end, ...members } = item as Record<string, unknown>;
  const isTimed = typeof start === 'number' && typeof end === 'number';
  const rest = restOf(isTimed ? members : item, title, text, ...(kind ? [kind] : []));
  return (
    <>
      {isTimed && end > 0 && <span className="quiet">{`${clock(start)}–${clock(end)} `}</span>}
      <strong>
        <AnyValue value={members[title]} />
      </strong>
      {kind && typeof members[kind] === 'string' && <span className="quiet">{` ${inWords(members[kind])}`}</span>}
      {members[text] != null && (
        <div>
          <AnyValue value={members[text]} />
        </div>
      )}
      {Object.keys(rest).length > 0 && <AnyValue value={rest} />}
    </>
  );
}
