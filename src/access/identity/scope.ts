/**
 * The permissions of a key. No scope contains another, but `subscriptions` sends the events that `events:read` reads.
 * `notes:read` covers clinical text and the platform's own words in every answer, `invites:read` the links with which a
 * person joins the platform, and `admin` keys and the audit log.
 */
export const SCOPES = [
  'people:read',
  'people:write',
  'invites:read',
  'imports',
  'sessions:read',
  'sessions:write',
  'notes:read',
  'recorder',
  'compliance',
  'events:read',
  'subscriptions',
  'webhooks',
  'operations',
  'admin',
] as const;

export type Scope = (typeof SCOPES)[number];
