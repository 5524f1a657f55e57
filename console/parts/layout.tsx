import { type ReactNode, useId } from 'react';
import { Link } from 'wouter';

/** How a page begins: the way back, its name, and what can be done on it. */
export function Head(props: { back?: readonly [href: string, words: string]; title: ReactNode; children?: ReactNode }) {
  const { back, title, children } = props;
  return (
    <>
      {back && (
        <p className="trail">
          <Link href={back[0]}>{back[1]}</Link>
        </p>
      )}
      <div className="bar">
        <h1>{title}</h1>
        {children}
      </div>
    </>
  );
}

/** A part of a page that its heading names; what can be done with it stands beside the heading. */
export function Section(props: { title: string; card?: boolean; aside?: ReactNode; children: ReactNode }) {
  const { title, card = false, aside, children } = props;
  const id = useId();
  const heading = <h2 id={id}>{title}</h2>;
  return (
    <section className={card ? 'card' : undefined} aria-labelledby={id}>
      {aside ? (
        <div className="bar">
          {heading}
          {aside}
        </div>
      ) : (
        heading
      )}
      {children}
    </section>
  );
}

/** Facts about one thing, each by its name; what is empty is shown as a dash. */
export function Facts({ facts }: { facts: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className="facts">
      {Object.entries(facts).map(([name, fact]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{fact}</dd>
        </div>
      ))}
    </dl>
  );
}

/**
 * Its title, and what a cell shows; the first column names its row. Numbers stand to the right, sentences and lists of
 * ids have more room.
 */
export type Column<T> = readonly [title: string, cell: (row: T) => ReactNode, holds?: 'number' | 'text'];

export interface Table<T> {
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}

/** A table; on a narrow screen each row becomes a card whose cells carry their titles. */
export function DataTable<T>({ caption, columns, rows, keyOf }: Table<T>) {
  return (
    <div className="table">
      <table>
        <caption className="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(([title, , holds]) => (
              <th key={title} scope="col" className={holds}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(([title, cell, holds]) => (
                <td key={title} data-title={title} className={holds}>
                  <div>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
