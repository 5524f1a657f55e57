import { api } from '../../api/client.js';
import { ActionButton, ConfirmedAction } from '../../parts/action.js';
import { GuardedAction } from './guards.js';
import { callsLeft, counted, type Import } from './words.js';

/** Planned outcomes that are something to do. */
const WORK = ['create-or-link', 'provider-change', 'attribute-change', 'delete'];

/** What can be done with an import as it stands. */
export function ImportActions({ view }: { view: Import }) {
  const { id, state, counts, deletes, planned } = view;
  const params = { path: { id } };
  const work = WORK.reduce((sum, name) => sum + (planned[name] ?? 0), 0);
  const count = (name: string) => (counts[name] ?? 0) + (deletes[name] ?? 0);
  const again = count('failed') + count('needsReview') + count('skipped');
  const isOpen = ['staging', 'planned', 'running', 'paused'].includes(state);
  return (
    <div className="buttons">
      {state === 'planned' && work > 0 && (
        <GuardedAction
          label="Apply"
          title={`Apply this plan to ${counted(work, 'row')}?`}
          guards={view.guards}
          run={(override) => api.POST('/v1/imports/{id}/apply', { params, body: { override } })}
        >
          <p>Exactly the plan is done, with {callsLeft(view)} to the platform. It can be paused and cancelled.</p>
        </GuardedAction>
      )}
      {state === 'running' && <ActionButton label="Pause" run={() => api.POST('/v1/imports/{id}/pause', { params })} />}
      {state === 'paused' && (
        <ActionButton label="Resume" isPrimary run={() => api.POST('/v1/imports/{id}/resume', { params })} />
      )}
      {state === 'completed' && again > 0 && (
        <GuardedAction
          label="Retry"
          title={`Take up ${counted(again, 'row')} again?`}
          guards={[]}
          run={(override) => api.POST('/v1/imports/{id}/retry', { params, body: { override } })}
        >
          <p>
            What failed, is in review or was skipped since it was changed after the plan. Rejected rows are corrected
            and sent anew.
          </p>
        </GuardedAction>
      )}
      {isOpen && (
        <ConfirmedAction
          label="Cancel the import"
          title="Cancel this import?"
          isDangerous
          run={() => api.POST('/v1/imports/{id}/cancel', { params })}
        >
          <p>
            Calls under way finish. {counted(count('pending'), 'row')} that {count('pending') === 1 ? 'is' : 'are'} not
            done will not be sent; what was done stays.
          </p>
        </ConfirmedAction>
      )}
      {(counts.rejected ?? 0) > 0 && (
        <a className="button" href={`/v1/imports/${id}/rejected.csv`} download="rejected.csv">
          Download rejected.csv
        </a>
      )}
    </div>
  );
}
