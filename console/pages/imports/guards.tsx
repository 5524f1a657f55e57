import { type ReactNode, useState } from 'react';
import { ProblemError } from '../../api/client.js';
import { ConfirmedAction } from '../../parts/action.js';
import { Field } from '../../parts/field.js';
import { DataTable, Section } from '../../parts/layout.js';
import { State } from '../../parts/state.js';
import { number } from '../../parts/values.js';
import { GUARDS, type Guard, type Import } from './words.js';

/** What the plan does in the large, beside what is let through without a word. */
export function Guards({ view: { guards, state } }: { view: Import }) {
  if (guards.length === 0 || state === 'staging') return null;
  return (
    <Section title="Guards">
      <DataTable
        caption="Guards of the plan"
        rows={guards}
        keyOf={({ name }) => name}
        columns={[
          ['Guard', ({ name, count, of }) => `${number(count)}${of > 0 ? ` of ${number(of)}` : ''} ${GUARDS[name]}`],
          ['Let through', thresholdOf],
          [
            'State',
            ({ exceeded }) =>
              exceeded ? <State tone="bad">needs an override</State> : <State tone="good">within</State>,
          ],
        ]}
      />
    </Section>
  );
}

/** The threshold in words: both of its bounds must be passed. */
function thresholdOf({ threshold, nameless }: Guard): string {
  if (!threshold) return 'any number';
  const most = `up to ${number(threshold.percent)} % or ${number(threshold.people)} people`;
  return nameless
    ? `${most}; ${number(nameless)} rejected rows do not say whom they name, who may be among these people`
    : most;
}

/** A button whose action guards may hold back: each is passed by typing how many people it would touch. */
export function GuardedAction(props: {
  label: string;
  title: string;
  children: ReactNode;
  guards: readonly Guard[];
  run: (override: Guard['name'][]) => Promise<unknown>;
}) {
  const { label, title, children, run } = props;
  // Those that refused: people may have changed since the plan was read.
  const [refusing, setRefusing] = useState<readonly Guard[]>();
  const guards = refusing ?? props.guards.filter(({ exceeded }) => exceeded);
  const attempt = () =>
    run(guards.map(({ name }) => name)).catch((error: unknown) => {
      if (error instanceof ProblemError && Array.isArray(error.more.guards)) setRefusing(error.more.guards as Guard[]);
      throw error;
    });
  return (
    <ConfirmedAction label={label} title={title} isPrimary run={attempt}>
      {children}
      {guards.map(({ name, count, of }) => (
        <Field
          key={name}
          label={`${number(count)} of ${number(of)} ${GUARDS[name]}, which is more than the guard lets through. Type ${count} to do it all the same.`}
          required
          pattern={String(count)}
          title={`Type ${count}`}
          inputMode="numeric"
        />
      ))}
    </ConfirmedAction>
  );
}
