import { type ReactNode, useState } from 'react';
import { type Column, DataTable } from '../../../parts/layout.js';
import { Breakable } from '../../../parts/values.js';
import { inWords, titled } from './measures.js';
import './content.css';

/** Deeper values are shown as JSON. */
const MAX_DEPTH = 5;

/** Longer lists are shown as JSON, in which the browser renders one text instead of many elements. */
const MAX_ITEMS = 200;

/** More columns do not fit on a page. */
const MAX_COLUMNS = 6;

/**
 * A value of the platform whose form is not known: objects by the names of their members, lists of plain objects as a
 * table, other lists item by item.
 *
 * @param name of the value, for a table
 */
export function AnyValue({
  value,
  name = '',
  depth = 0,
}: {
  value: unknown;
  name?: string;
  depth?: number;
}): ReactNode {
  if (value === null || value === undefined || value === '') return <span className="quiet">none</span>;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value !== 'object') return <Breakable name={String(value)} />;
  const members = Object.entries(value);
  if (members.length === 0) return <span className="quiet">none</span>;
  if (depth >= MAX_DEPTH || members.length > MAX_ITEMS) return <pre>{JSON.stringify(value, null, 2)}</pre>;
  const columns = columnsOf(value);
  if (columns) return <ItemTable items={value as object[]} columns={columns} name={name} />;
  if (Array.isArray(value))
    return (
      <ul className="values">
        {value.map((item, at) => (
          <li key={at}>
            <AnyValue value={item} depth={depth + 1} />
          </li>
        ))}
      </ul>
    );
  return (
    <dl className="values">
      {members.map(([field, member]) => (
        <div key={field}>
          <dt>{inWords(field)}</dt>
          <dd>
            <AnyValue value={member} name={inWords(field)} depth={depth + 1} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The members of the items of a list; undefined if they do not fit in a table. */
function columnsOf(items: object): string[] | undefined {
  if (!Array.isArray(items) || items.length < 2 || !items.every(isPlain)) return undefined;
  const columns = [...new Set(items.flatMap(Object.keys))];
  return columns.length > 0 && columns.length <= MAX_COLUMNS ? columns : undefined;
}

/** True for an object without further lists and objects in it. */
const isPlain = (item: unknown): boolean =>
  typeof item === 'object' &&
  item !== null &&
  !Array.isArray(item) &&
  Object.values(item).every((member) => typeof member !== 'object' || member === null);

function ItemTable({ items, columns, name }: { items: readonly object[]; columns: readonly string[]; name: string }) {
  const rows = items.map((item, at) => ({ key: String(at), members: new Map<string, unknown>(Object.entries(item)) }));
  return (
    <DataTable
      caption={name}
      rows={rows}
      keyOf={({ key }) => key}
      columns={titled(columns, inWords).map(
        ({ field, label }): Column<(typeof rows)[number]> => [
          label,
          ({ members }) => <AnyValue value={members.get(field)} depth={MAX_DEPTH} />,
        ],
      )}
    />
  );
}

/** Everything that the platform returned, rendered when opened because it may be large. */
export function RawValue({ value }: { value: unknown }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>As the platform returned it</summary>
      {isOpen && <pre>{JSON.stringify(value, null, 2)}</pre>}
    </details>
  );
}
