/**
 * What a key may be allowed to do. `notes:read` covers clinical text, and whatever the platform says in words of its own,
 * in every answer that holds some; `admin` keys and the audit trail. No scope contains another.
 */
export const SCOPES = [
  'people:read',
  'people:write',
  'imports',
  'sessions:read',
  'sessions:write',
  'notes:read',
  'recorder',
  'compliance',
  'events:read',
  'webhooks',
  'operations',
  'admin',
] as const;

export type Scope = (typeof SCOPES)[number];
