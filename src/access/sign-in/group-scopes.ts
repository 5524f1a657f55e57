import { parseObject } from '../../text/json-object.js';
import { SCOPES, type Scope } from '../identity/scope.js';

/** The scopes of each group or role of the provider. */
export type GroupScopes = ReadonlyMap<string, readonly Scope[]>;

/** Reads OIDC_SCOPES. @throws {Error} that names each fault */
export function readGroupScopes(json: string): GroupScopes {
  const groups = parseObject(json) ?? {};
  const faults = Object.entries(groups).flatMap(([group, scopes]) => {
    if (!Array.isArray(scopes) || scopes.length === 0) return [`${group} needs a list of scopes`];
    return scopes.filter((scope) => !SCOPES.includes(scope)).map((scope) => `${group} has the unknown scope ${scope}`);
  });
  if (Object.keys(groups).length === 0)
    faults.push('it must be a JSON object such as {"notebridge-admins": ["admin", "operations"]}');
  if (faults.length === 0) return new Map(Object.entries(groups as Record<string, Scope[]>));
  throw new Error(`OIDC_SCOPES is not usable: ${faults.join('; ')}. The scopes are ${SCOPES.join(', ')}.`);
}

/** The scopes of a person. @param claim the names of the groups that a provider put into the ID token, or one name */
export function scopesOfGroups(groups: GroupScopes, claim: unknown): ReadonlySet<Scope> {
  return new Set([claim].flat().flatMap((group) => groups.get(group as string) ?? []));
}
