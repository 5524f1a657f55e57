import { type CustomDecorator, SetMetadata } from '@nestjs/common';

/** What a key may be allowed to do. `admin` covers keys and the audit trail; no scope contains another. */
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

/** Metadata keys of the two decorators below. */
export const PUBLIC_ROUTE = Symbol('notebridge:public');
export const ROUTE_SCOPES = Symbol('notebridge:scopes');

/** Opens a route, or all routes of a controller, to callers without a key. */
export function Public(): CustomDecorator<symbol> {
  return SetMetadata(PUBLIC_ROUTE, true);
}

/** The scopes that a caller needs, all of them; a route that says nothing needs `admin`. */
export function Scopes(...scopes: [Scope, ...Scope[]]): CustomDecorator<symbol> {
  return SetMetadata(ROUTE_SCOPES, scopes);
}

/** The route is for every caller with a key, whatever its scopes. */
export function AnyKey(): CustomDecorator<symbol> {
  return SetMetadata(ROUTE_SCOPES, []);
}
