import type { ReactNode } from 'react';
import { Section } from '../../parts/layout.js';
import { number } from '../../parts/values.js';

/** Counts are exact up to this; beyond, the service looks no further. */
const MOST = 1_000;

/** A bounded count, such as 12 or 1,000+. */
export const count = (value: number): string => (value > MOST ? `${number(MOST)}+` : number(value));

/** Figures of PostgreSQL in a card, or that it did not tell them in time. */
export function Figures<T>(props: { title: string; of: T | null; children: (figures: T) => ReactNode }) {
  const { title, of, children } = props;
  return (
    <Section card title={title}>
      {of === null ? <p className="quiet">Not known now: PostgreSQL did not answer in time.</p> : children(of)}
    </Section>
  );
}
