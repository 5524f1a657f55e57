import type { Schemas } from './methods.js';

/** What can be waited for, and what is returned. */
export interface Waited {
  provider: Schemas['PersonResponse'];
  client: Schemas['PersonResponse'];
  session: Schemas['SessionResponse'];
  import: Schemas['ImportResponse'];
  'compliance-job': Schemas['ComplianceJobResponse'];
}

/** The stage of work: it continues, it has ended well, or it has ended badly, with the reason. */
export type Rest = 'going-on' | 'good' | { state: string; code: string | null; message: string };

type ErrorOfWork = { code: string; message: string | null } | null;

const bad = (state: string, error: ErrorOfWork): Rest => ({
  state,
  code: error?.code ?? null,
  message: error?.message ?? `It ended as ${state}.`,
});

function restOfPerson({ sync: { state, error } }: Waited['client']): Rest {
  if (state === 'synced' || state === 'deleted') return 'good';
  return state === 'failed' || state === 'needs-review' ? bad(state, error) : 'going-on';
}

function restOfSession(session: Waited['session']): Rest {
  const { state, error, goneAt, notesRevision, aiNotesEnabled, aiNotesFinal } = session;
  if (notesRevision > 0) return 'good';
  if (['Error', 'Rejected', 'Unknown'].includes(state)) return bad(state, error);
  if (goneAt !== null) return bad('gone', error);
  return state === 'Done' && aiNotesEnabled === false && aiNotesFinal ? 'good' : 'going-on';
}

function restOfImport({ state }: Waited['import']): Rest {
  if (state === 'failed' || state === 'cancelled') return bad(state, null);
  return state === 'staging' || state === 'running' ? 'going-on' : 'good';
}

function restOfJob({ state, error, result }: Waited['compliance-job']): Rest {
  if (['Failed', 'Rejected', 'Abandoned', 'Unknown'].includes(state)) return bad(state, error);
  if (error !== null) return bad(state, error);
  // Absent if the key may not see it.
  return state === 'Completed' && result !== null ? 'good' : 'going-on';
}

/** The resting states of each kind. */
export const REST_OF: { [Kind in keyof Waited]: (resource: Waited[Kind]) => Rest } = {
  provider: restOfPerson,
  client: restOfPerson,
  session: restOfSession,
  import: restOfImport,
  'compliance-job': restOfJob,
};
