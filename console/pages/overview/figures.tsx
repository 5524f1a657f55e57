import type { ReactNode } from 'react';
import { Section } from '../../parts/layout.js';
import { number } from '../../parts/values.js';

/** Counts are exact up to this number; the service counts no further. */
const MAX_COUNTED = 1_000;

/** A bounded count, such as 12 or 1,000+. */
export const count = (value: number): string => (value > MAX_COUNTED ? `${number(MAX_COUNTED)}+` : number(value));

/** A card of figures, which are null if PostgreSQL did not answer in time. */
export function Figures<T>(props: { title: string; of: T | null; children: (figures: T) => ReactNode }) {
  const { title, of, children } = props;
  return (
    <Section card title={title}>
      {of === null ? <p className="quiet">Unknown: PostgreSQL did not answer in time.</p> : children(of)}
    </Section>
  );
}
