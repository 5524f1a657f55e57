import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, body, type Schemas } from '../../api/client.js';
import { labelOf, labelsOf, wordOf } from '../../api/words.js';
import { Dialog, useAction } from '../../parts/action.js';
import { Select } from '../../parts/field.js';
import { ErrorNote } from '../../parts/notes.js';
import { number } from '../../parts/values.js';
import type { Kind } from '../people/person.js';

type Person = Schemas['PersonResponse'];
type Request = Schemas['ResolveSelectionRequest'];
type Selection = Omit<Request, 'dryRun' | 'plan'>;

/** The actions for many people, because a link names one user, and a deletion is confirmed one by one. */
const ACTIONS: readonly Request['action'][] = ['create', 'retry', 'ignore'];

type Code = Request['code'];

/** The recommended action of a code; otherwise one that creates nothing. */
const usualFor = (code: Code): Request['action'] =>
  ACTIONS.find((action) => action === wordOf('personCode', code)?.action) ?? 'retry';

/** The codes that an action may resolve. */
const unsettledCodes = (): Code[] =>
  labelsOf('personCode').flatMap(([code]) => (wordOf('personCode', code)?.action ? (code as Code) : []));

/** Resolves the chosen people, or all with one code. They are counted first, then exactly these are resolved. */
export function ResolveSelection(props: { kind: Kind; chosen: readonly Person[]; onDone: () => void }) {
  const { kind, chosen, onDone } = props;
  const [isOpen, setOpen] = useState(false);
  const close = (isDone: boolean) => {
    setOpen(false);
    if (isDone) onDone();
  };
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {chosen.length === 0 ? 'Resolve by reason' : `Resolve ${number(chosen.length)} chosen`}
      </button>
      {isOpen && <ResolveDialog kind={kind} chosen={chosen} onClose={close} />}
    </>
  );
}

const resolve = (request: Request) => body(api.POST('/v1/people/resolve', { body: request }));

function ResolveDialog(props: { kind: Kind; chosen: readonly Person[]; onClose: (isDone: boolean) => void }) {
  // The list behind the dialog is read again after the action, and may be without the chosen people then.
  const [{ kind, chosen }] = useState(props);
  const count = useMutation({ mutationFn: (selection: Selection) => resolve({ ...selection, dryRun: true }) });
  const run = useAction(resolve);
  const planned = count.data;
  const begin = () =>
    planned && count.variables && run.mutate({ ...count.variables, dryRun: false, plan: planned.plan });
  const error = count.error ?? run.error;
  const codes = unsettledCodes();
  const own = codes.filter((one) => chosen.some(({ sync }) => sync.error?.code === one));
  const offered = own.length > 0 ? own : codes;
  const [code, setCode] = useState<Code>(offered[0] ?? 'email-taken');
  const recommended = wordOf('personCode', code);
  return (
    <Dialog
      title={chosen.length === 0 ? `Resolve ${kind}s` : `Resolve ${number(chosen.length)} chosen ${kind}s`}
      close={run.data ? 'Close' : 'Cancel'}
      buttons={
        !run.data && (
          <>
            <button type="submit" className={planned ? undefined : 'primary'} disabled={count.isPending}>
              {planned ? 'Count again' : 'Count people'}
            </button>
            {planned && planned.count > 0 && (
              <button type="button" className="primary" disabled={run.isPending} onClick={begin}>
                Resolve {number(planned.count)}
              </button>
            )}
          </>
        )
      }
      onClose={() => props.onClose(run.isSuccess)}
      onChange={() => {
        count.reset();
        run.reset();
      }}
      onSubmit={(given) => {
        run.reset();
        const action = ACTIONS.find((one) => one === given.get('action'));
        if (!action) return;
        const ids = chosen.map(({ externalId }) => externalId);
        count.mutate({ kind, code, action, ...(ids.length > 0 && { externalIds: ids }) });
      }}
    >
      <div className="fields">
        <Select
          label="Reason"
          name="code"
          options={offered}
          of="personCode"
          value={code}
          onChange={(next) => next && setCode(next)}
        />
        <Select key={code} label="Action" name="action" options={ACTIONS} of="resolveAction" value={usualFor(code)} />
      </div>
      {recommended?.action && (
        <p>
          <strong>Recommended: {labelOf('resolveAction', recommended.action)}.</strong> {recommended.why}
        </p>
      )}
      <p className="help">
        Create looks up the email, and creates a user if there is none. Without an email, it creates a user immediately,
        so check first that the platform has none. To link many people, import a file with the column platformUserId.
      </p>
      <div role="status">
        {run.data && <p>{doneOf(run.data)}</p>}
        {planned && !run.data && <p>{sentenceOf(planned)}</p>}
      </div>
      {error && <ErrorNote error={error} />}
    </Dialog>
  );
}

function sentenceOf({ count, more }: Schemas['ResolveSelectionResponse']): string {
  if (count === 0) return 'Nobody with this reason can be resolved by this action. Choose another action.';
  const selected = `${number(count)} ${count === 1 ? 'person is' : 'people are'} selected${more ? ', and there are more' : ''}.`;
  return `${selected} If any of them changes before you resolve them, nobody is resolved.`;
}

function doneOf({ count, more }: Schemas['ResolveSelectionResponse']): string {
  return `${number(count)} ${count === 1 ? 'person is' : 'people are'} resolved.${more ? ' There are more: count again.' : ''}`;
}
