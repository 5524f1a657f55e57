import type { SubjectKind } from '../access/audit/audit-record.js';

/** What the paths of events lead to, as the audit trail calls it. */
const KINDS: Record<string, SubjectKind> = {
  clients: 'client',
  providers: 'provider',
  sessions: 'session',
  imports: 'import',
  'compliance/jobs': 'compliance-job',
  'smart-edit/jobs': 'smart-edit-job',
  'processing-sessions': 'processing-session',
  'processing-notices': 'delivery',
};

/** What an event is about. @param path its subject, below /v1 @returns nothing's id where the path leads to nothing */
export function subjectOf(path: string): [SubjectKind, string | null] {
  const slash = path.lastIndexOf('/');
  const kind = KINDS[path.slice(0, slash)];
  return kind ? [kind, decodeURIComponent(path.slice(slash + 1))] : ['platform-user', null];
}
