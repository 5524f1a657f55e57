import type { ReactNode } from 'react';
import { type Scope, useScopes } from '../api/session.js';
import { ConfirmedAction } from './action.js';
import { LacksScope } from './notes.js';

/** The ways to resolve something, each with its effect; without the scope they are only listed. */
export function Choices<A extends string>(props: {
  /** The thing to resolve. */
  what: string;
  choices: readonly { action: A; does: string }[];
  labels: Readonly<Record<A, string>>;
  scope: Scope;
  dangerous: A;
  /** The fields of each choice. */
  fields: Partial<Record<A, ReactNode>>;
  run: (action: A, given: FormData) => Promise<unknown>;
}) {
  const { what, choices, labels, scope, dangerous, fields, run } = props;
  const isAllowed = useScopes().includes(scope);
  return (
    <>
      <dl className="choices">
        {choices.map(({ action, does }) => (
          <div key={action}>
            <dt>
              {isAllowed ? (
                <ConfirmedAction
                  label={labels[action]}
                  title={`${labels[action]}: ${what}`}
                  isDangerous={action === dangerous}
                  run={(given) => run(action, given)}
                >
                  <p>{does}</p>
                  {fields[action]}
                </ConfirmedAction>
              ) : (
                labels[action]
              )}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      {!isAllowed && <LacksScope scope={scope} />}
    </>
  );
}
