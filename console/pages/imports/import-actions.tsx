import { Link } from 'wouter';
import { api } from '../../api/client.js';
import { ActionButton, ConfirmedAction } from '../../parts/action.js';
import { Read } from '../../parts/read.js';
import { GuardedAction } from './guards.js';
import type { Choices } from './upload.js';
import { callsLeft, counted, hasChanges, type Import, isOver, planSentence } from './words.js';

/** What a cancel would do to whom now. */
export function CancelEffect({ id }: { id: string }) {
  const params = { path: { id } };
  return (
    <Read name={['imports', id, 'cancellation']} call={() => api.GET('/v1/imports/{id}/cancellation', { params })}>
      {({ text }) => <p>{text}</p>}
    </Read>
  );
}

/** The actions that the state of an import allows. @param unsent corrected rows that are not part of the plan */
export function ImportActions({ view, unsent }: { view: Import; unsent: number }) {
  const { id, state, counts, deletes, mode, defaultProvider } = view;
  const params = { path: { id } };
  const count = (name: string) => (counts[name] ?? 0) + (deletes[name] ?? 0);
  const retried = count('failed') + count('needsReview');
  const last: Partial<Choices> = { mode, defaultProvider: defaultProvider ?? undefined };
  return (
    <div className="buttons">
      {state === 'planned' && hasChanges(view) && (
        <GuardedAction
          label="Apply"
          title="Apply this plan?"
          guards={view.guards}
          run={(override) => api.POST('/v1/imports/{id}/apply', { params, body: { override } })}
        >
          <p>
            {planSentence(view)} This takes {callsLeft(view)} to the platform. You can pause or cancel the import.
          </p>
          {unsent > 0 && (
            <p className="note">
              {counted(unsent, 'corrected row is', 'corrected rows are')} not sent yet, and therefore not part of this
              plan.
            </p>
          )}
        </GuardedAction>
      )}
      {state === 'running' && <ActionButton label="Pause" run={() => api.POST('/v1/imports/{id}/pause', { params })} />}
      {state === 'paused' && (
        <ActionButton label="Resume" isPrimary run={() => api.POST('/v1/imports/{id}/resume', { params })} />
      )}
      {state === 'completed' && retried > 0 && (
        <ConfirmedAction
          label="Retry"
          title={`Retry ${counted(retried, 'row')}?`}
          isPrimary
          run={() => api.POST('/v1/imports/{id}/retry', { params })}
        >
          <p>Rows that failed or need review are tried again. Rejected rows are not: correct them.</p>
        </ConfirmedAction>
      )}
      {!isOver(view) && (
        <ConfirmedAction
          label="Cancel the import"
          title="Cancel this import?"
          close="Keep the import"
          isDangerous
          run={() => api.POST('/v1/imports/{id}/cancel', { params })}
        >
          <CancelEffect id={id} />
        </ConfirmedAction>
      )}
      {(counts.rejected ?? 0) > 0 && (
        <a className="button" href={`/v1/imports/${id}/rejected.csv`} download="rejected.csv">
          Download rejected.csv
        </a>
      )}
      {isOver(view) && (
        <Link className="button" href="/imports/new" state={last}>
          New import with these options
        </Link>
      )}
    </div>
  );
}
