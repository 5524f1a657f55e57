import { type ReactNode, useId } from 'react';
import { Link } from 'wouter';

/** The head of a page: a link back, the title and the actions. */
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

/** A part of a page with a heading, next to which its actions stand. */
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

/** Facts about one thing, each with its name; an empty one is shown as a dash. */
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
 * A title, and the content of a cell; the first column names its row. Numbers are aligned to the right, and sentences and
 * lists of ids are wider.
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
