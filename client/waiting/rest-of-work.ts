import type { Schemas } from '../methods.js';

/** The kinds of work that can be waited for, and the result of each. */
export interface Waited {
  provider: Schemas['PersonResponse'];
  client: Schemas['PersonResponse'];
  session: Schemas['SessionResponse'];
  import: Schemas['ImportResponse'];
  'compliance-job': Schemas['ComplianceJobResponse'];
}

/** Why work has ended badly. */
export interface BadEnd {
  state: string;
  code: string | null;
  message: string;
}

/** The stage of work. A session can have both ends: it has notes, and then it fails or goes. With neither it continues. */
export interface Rest {
  isGood: boolean;
  bad: BadEnd | null;
}

type ErrorOfWork = { code: string; message: string | null } | null;

const GOING_ON: Rest = { isGood: false, bad: null };
const GOOD: Rest = { isGood: true, bad: null };

const bad = (state: string, error: ErrorOfWork): Rest => ({
  isGood: false,
  bad: { state, code: error?.code ?? null, message: error?.message ?? `It ended as ${state}.` },
});

/** Errors of a compliance job that no lookup solves. All others end automatically: it is held, postponed or looked up again. */
const FINAL_JOB_CODES: ReadonlySet<string> = new Set(['result-unreadable', 'gone', 'no-result']);

const NOTES_UNREADABLE = {
  code: 'notes-unreadable',
  message: 'The session is done, but notebridge cannot read its notes. Compare PLATFORM_CONTRACT with an answer.',
};

function restOfPerson({ sync: { state, error } }: Waited['client']): Rest {
  if (state === 'synced' || state === 'deleted') return GOOD;
  return state === 'failed' || state === 'needs-review' ? bad(state, error) : GOING_ON;
}

function restOfSession(session: Waited['session']): Rest {
  const { state, error, goneAt, notesRevision, aiNotesEnabled, aiNotesFinal, incomplete } = session;
  const isGood = notesRevision > 0;
  if (['Error', 'Rejected', 'Unknown'].includes(state)) return { ...bad(state, error), isGood };
  if (goneAt !== null) return { ...bad('gone', error), isGood };
  if (isGood) return GOOD;
  if (state !== 'Done' || !aiNotesFinal) return GOING_ON;
  if (aiNotesEnabled === false) return GOOD;
  return incomplete.includes('notes') ? bad(state, NOTES_UNREADABLE) : GOING_ON;
}

function restOfImport({ state }: Waited['import']): Rest {
  if (state === 'failed' || state === 'cancelled') return bad(state, null);
  return state === 'staging' || state === 'running' ? GOING_ON : GOOD;
}

function restOfJob(job: Waited['compliance-job']): Rest {
  const { state, error } = job;
  if (['Failed', 'Rejected', 'Abandoned', 'Unknown'].includes(state)) return bad(state, error);
  if (error !== null && FINAL_JOB_CODES.has(error.code)) return bad(state, error);
  return state === 'Completed' ? restOfCompleted(job) : GOING_ON;
}

/** A completed job is done with its result, also if retention has removed it. A result that cannot be decrypted ends badly. */
function restOfCompleted({ state, result, removedAt, unreadable }: Waited['compliance-job']): Rest {
  // Absent if the key may not see it.
  if (result !== null || removedAt !== null) return GOOD;
  if (!unreadable?.includes('result')) return GOING_ON;
  const message = 'The job is completed, but its stored result cannot be decrypted.';
  return bad(state, { code: 'result-undecryptable', message });
}

/** The resting states of each kind. */
export const REST_OF: { [Kind in keyof Waited]: (resource: Waited[Kind]) => Rest } = {
  provider: restOfPerson,
  client: restOfPerson,
  session: restOfSession,
  import: restOfImport,
  'compliance-job': restOfJob,
};
