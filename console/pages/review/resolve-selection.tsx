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
type Request = Schemas['SelectionRequest'];
type Selection = Omit<Request, 'dryRun' | 'count'>;
type Code = Selection['code'];
type Action = Selection['action'];

/** The actions for many people: a link names one user, and a deletion is confirmed one by one. */
const ACTIONS: readonly Action[] = ['create', 'retry', 'ignore'];

/** The recommended action of a code; otherwise one that creates nothing. */
const usualFor = (code: Code): Action =>
  ACTIONS.find((action) => action === wordOf('personCode', code)?.action) ?? 'ignore';

/** The codes that an action may resolve. */
const unsettledCodes = (): Code[] =>
  labelsOf('personCode').flatMap(([code]) => (wordOf('personCode', code)?.action ? (code as Code) : []));

/** Resolves the chosen people, or resolves or retries all with one code. They are counted first. */
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
        {chosen.length === 0 ? 'Retry or resolve by reason' : `Resolve ${number(chosen.length)} chosen`}
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
  const run = useAction((selection: Selection) => resolve({ ...selection, dryRun: false, count: count.data?.count }));
  const planned = count.data;
  const error = count.error ?? run.error;
  const codes = unsettledCodes();
  const own = codes.filter((one) => chosen.some(({ sync }) => sync.error?.code === one));
  const offered = own.length > 0 ? own : codes;
  const [code, setCode] = useState<Code>(offered[0] ?? 'email-taken');
  const [action, setAction] = useState<Action>(usualFor(code));
  const recommended = wordOf('personCode', code);
  return (
    <Dialog
      title={chosen.length === 0 ? `Retry or resolve ${kind}s` : `Resolve ${number(chosen.length)} chosen ${kind}s`}
      close={run.data ? 'Close' : 'Cancel'}
      buttons={
        !run.data && (
          <>
            <button type="submit" className={planned ? undefined : 'primary'} disabled={count.isPending}>
              {planned ? 'Count again' : 'Count people'}
            </button>
            {planned && planned.count > 0 && (
              <button
                type="button"
                className="primary"
                disabled={run.isPending}
                onClick={() => count.variables && run.mutate(count.variables)}
              >
                {`${labelOf('resolveAction', action)} all ${number(planned.count)}`}
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
      onSubmit={() => {
        run.reset();
        const ids = chosen.map(({ externalId }) => externalId);
        count.mutate({ kind, code, action, ...(ids.length > 0 && { externalIds: ids }) });
      }}
    >
      <div className="fields">
        <Select
          label="Reason"
          options={offered}
          of="personCode"
          value={code}
          onChange={(next = code) => {
            setCode(next);
            setAction(usualFor(next));
          }}
        />
        <Select
          label="Action"
          options={ACTIONS}
          of="resolveAction"
          value={action}
          onChange={(next = action) => setAction(next)}
        />
      </div>
      {recommended?.action && (
        <p>
          <strong>Recommended: {labelOf('resolveAction', recommended.action)}.</strong> {recommended.why}
        </p>
      )}
      <p>{wordOf('resolveAction', action)?.hint}</p>
      <p className="help">To link many people, import a file with the column platformUserId.</p>
      <div role="status">
        {run.data && <p>{doneOf(run.data.count, action)}</p>}
        {planned && !run.data && <p>{sentenceOf(planned.count)}</p>}
      </div>
      {error && <ErrorNote error={error} />}
    </Dialog>
  );
}

const peopleOf = (count: number): string => `${number(count)} ${count === 1 ? 'person is' : 'people are'}`;

function sentenceOf(count: number): string {
  if (count === 0) return 'This action leads nobody with this reason on. Choose another action.';
  return `${peopleOf(count)} selected. If there are more by then, nobody is changed.`;
}

const doneOf = (count: number, action: Action): string =>
  action === 'retry'
    ? `${peopleOf(count)} retried. Those that fail again come back to this list.`
    : `${peopleOf(count)} resolved.`;
