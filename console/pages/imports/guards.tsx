import { type ReactNode, useState } from 'react';
import { NotebridgeError } from '../../../client/notebridge-error.js';
import { inSentence, labelOf, wordOf } from '../../api/words.js';
import { ConfirmedAction } from '../../parts/action.js';
import { Field } from '../../parts/field.js';
import { Section } from '../../parts/layout.js';
import { State } from '../../parts/state.js';
import { number } from '../../parts/values.js';
import type { Guard, Import } from './words.js';

/** The confirmations of guards; without one, the number is typed. */
const CONFIRMATIONS: Partial<Record<Guard['name'], string>> = {
  idColumn: 'The new column is right.',
  looksDoubled: 'These are different people.',
};

const sentenceOf = ({ name, count, of }: Guard) =>
  `${number(count)}${of > count ? ` of ${number(of)}` : ''} ${inSentence(labelOf('importGuard', name))}.`;

const effectOf = ({ name }: Guard) => wordOf('importGuard', name)?.hint;

/** The guards of a plan. */
export function Guards({ view: { guards, state } }: { view: Import }) {
  const shown = guards.filter(({ count }) => count > 0);
  if (shown.length === 0 || state !== 'planned') return null;
  return (
    <Section title="Safety checks">
      <ul className="plain guards">
        {shown.map((guard) => (
          <li key={guard.name}>
            {guard.exceeded ? <State tone="bad">Needs confirmation</State> : <State tone="good">OK</State>}{' '}
            <strong>{sentenceOf(guard)}</strong> {effectOf(guard)}{' '}
            {guard.threshold &&
              `Up to ${number(guard.threshold.percent)} % or ${number(guard.threshold.people)} need no confirmation.`}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** A button whose action needs a confirmation of each exceeded guard. */
export function GuardedAction(props: {
  label: string;
  title: string;
  children: ReactNode;
  guards: readonly Guard[];
  run: (override: Guard['name'][]) => Promise<unknown>;
}) {
  const { label, title, children, run } = props;
  // People may have changed since the plan was read, so the service may name other guards.
  const [refusing, setRefusing] = useState<readonly Guard[]>();
  const guards = refusing ?? props.guards.filter(({ exceeded }) => exceeded);
  const attempt = () =>
    run(guards.map(({ name }) => name)).catch((error: unknown) => {
      if (error instanceof NotebridgeError && Array.isArray(error.more.guards))
        setRefusing(error.more.guards as Guard[]);
      throw error;
    });
  return (
    <ConfirmedAction label={label} title={title} isPrimary run={attempt}>
      {children}
      {guards.map((guard) => (
        <Confirmation key={guard.name} guard={guard} />
      ))}
    </ConfirmedAction>
  );
}

function Confirmation({ guard }: { guard: Guard }) {
  const effect = effectOf(guard);
  const confirmation = CONFIRMATIONS[guard.name];
  if (confirmation)
    return (
      <label className="check">
        <input type="checkbox" required />
        <span>
          {sentenceOf(guard)} {effect} <strong>{confirmation}</strong>
        </span>
      </label>
    );
  return (
    <Field
      label={`${sentenceOf(guard)} ${effect} Type ${guard.count} to confirm.`}
      required
      pattern={String(guard.count)}
      title={`Type ${guard.count}`}
      inputMode="numeric"
    />
  );
}
