import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, body, type Schemas } from '../../api/client.js';
import { momentOf } from '../../api/zone.js';
import { Dialog, useAction } from '../../parts/action.js';
import { Field, Select } from '../../parts/field.js';
import { ErrorNote } from '../../parts/notes.js';
import { DELIVERY, wordIn, wordsOf } from '../../parts/state.js';
import { number } from '../../parts/values.js';

type Selection = Omit<Schemas['ReplayRequest'], 'dryRun' | 'plan'>;

/** All event types of the API; the compiler reports a missing one. */
const EVENT_TYPES: Record<NonNullable<Selection['eventType']>, true> = {
  SESSION_CREATED: true,
  SESSION_PROCESSING_STARTED: true,
  SESSION_PROCESSING_NOTES_COMPLETED: true,
  SESSION_PROCESSING_COMPLETED: true,
  SESSION_PROCESSING_FAILED: true,
  PROCESSING_SESSION_FINISHED: true,
  PROCESSING_SESSION_NOTES_FINISHED: true,
  COMPLIANCE_JOB_COMPLETED: true,
  COMPLIANCE_JOB_FAILED: true,
  SMART_EDIT_JOB_COMPLETED: true,
  SMART_EDIT_JOB_FAILED: true,
  USER_CREATED: true,
};

/** Replays a selection of deliveries: it is counted first, then replayed if the number is the same. */
export function ReplaySelection({ state }: { state: Selection['state'] | undefined }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Replay by filter
      </button>
      {isOpen && <ReplayDialog first={state ?? 'dead'} onClose={() => setOpen(false)} />}
    </>
  );
}

const replay = (request: Schemas['ReplayRequest']) =>
  body(api.POST('/v1/webhook-deliveries/replay', { body: request }));

function ReplayDialog({ first, onClose }: { first: Selection['state']; onClose: () => void }) {
  const count = useMutation({ mutationFn: (selection: Selection) => replay({ ...selection, dryRun: true }) });
  const run = useAction((request: Schemas['ReplayRequest']) => replay(request));
  const plan = count.data?.plan;
  const begin = () => plan && count.variables && run.mutate({ ...count.variables, dryRun: false, plan });
  const error = count.error ?? run.error;
  const forget = () => {
    count.reset();
    run.reset();
  };
  return (
    <Dialog
      title="Replay deliveries by filter"
      close={run.data ? 'Close' : 'Cancel'}
      buttons={
        !run.data && (
          <>
            <button type="submit" className={plan ? undefined : 'primary'} disabled={count.isPending}>
              {plan ? 'Count again' : 'Count deliveries'}
            </button>
            {plan && plan.count > 0 && (
              <button type="button" className="primary" disabled={run.isPending} onClick={begin}>
                Replay {number(plan.count)}
              </button>
            )}
          </>
        )
      }
      onClose={onClose}
      onChange={forget}
      onSubmit={(given) => {
        run.reset();
        count.mutate({
          state: wordIn(DELIVERY, String(given.get('state'))) ?? first,
          eventType: wordIn(EVENT_TYPES, String(given.get('eventType'))),
          receivedSince: momentOf(given.get('receivedSince')),
          receivedBefore: momentOf(given.get('receivedBefore')),
        });
      }}
    >
      <div className="fields">
        <Select label="State" name="state" options={wordsOf(DELIVERY)} of="deliveryState" value={first} />
        <Select label="Event" name="eventType" none="any" options={wordsOf(EVENT_TYPES)} />
        <Field label="Received since (empty: no limit)" name="receivedSince" type="datetime-local" />
        <Field label="Received before (empty: now)" name="receivedBefore" type="datetime-local" />
      </div>
      <div role="status">
        {run.data && <p>Replaying {number(run.data.count)} deliveries.</p>}
        {plan && !run.data && <p>{sentenceOf(plan.count)}</p>}
      </div>
      {error && <ErrorNote error={error} />}
    </Dialog>
  );
}

function sentenceOf(count: number): string {
  if (count === 0) return 'No delivery matches. Change the selection.';
  return `${number(count)} ${count === 1 ? 'delivery matches' : 'deliveries match'}. Exactly these are replayed, or none if the selection has changed.`;
}
