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
  /** The choice that is usually right, and when; it comes first. */
  recommended?: { action?: string; why?: string } | undefined;
  /** The fields of each choice. */
  fields: Partial<Record<A, ReactNode>>;
  run: (action: A, given: FormData) => Promise<unknown>;
}) {
  const { what, labels, scope, dangerous, recommended, fields, run } = props;
  const isRecommended = (action: A) => action === recommended?.action;
  const choices = [...props.choices].sort((a, b) => Number(isRecommended(b.action)) - Number(isRecommended(a.action)));
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
                  isPrimary={isRecommended(action)}
                  run={(given) => run(action, given)}
                >
                  <p>{does}</p>
                  {fields[action]}
                </ConfirmedAction>
              ) : (
                labels[action]
              )}
            </dt>
            <dd>
              {isRecommended(action) && <strong>{`Recommended. ${recommended?.why} `}</strong>}
              {does}
            </dd>
          </div>
        ))}
      </dl>
      {!isAllowed && <LacksScope scope={scope} />}
    </>
  );
}
