import type { LinkReference } from '../row/import-row.js';
import { objectIn, objectsIn, textIn, tokenIn } from './fhir-values.js';
import { identifierKeys, logicalKey, REFERENCE_TYPES, type Referrer, typeOf, uriKey } from './reference-key.js';

type Target = LinkReference['provider'];

/**
 * Where a reference to a provider leads: several keys for a contained practitioner with several identifiers, none for a
 * reference to a relative or to the client.
 */
export function providerTargets(reference: unknown, from: Referrer): Target[] {
  const { reference: written, type: writtenType, identifier, display } = objectIn(reference);
  const text = tokenIn(written);
  const logical = logicalKey('provider', objectIn(identifier));
  if (text?.startsWith('#') && !logical) return containedTargets(text, from);

  const uri = text?.startsWith('#') ? undefined : text;
  const type = uri ? typeOf(uri) : textIn(writtenType);
  if (type === 'Organization') return [{ lost: 'organization' }];
  if (type !== undefined && !REFERENCE_TYPES.provider.includes(type)) return [];
  const key = (uri && uriKey('provider', uri, from.base)) || logical;
  if (key) return [{ key }];
  if (uri) return [{ lost: 'unknown' }];
  return textIn(display) ? [{ lost: 'display-only' }] : [];
}

/** The identifiers of a contained practitioner, which has no other name outside of its resource. */
function containedTargets(uri: string, { resource, base }: Referrer): Target[] {
  const contained = objectsIn(resource.contained).find(({ id }) => id === uri.slice(1) || id === uri);
  const type = contained ? textIn(contained.resourceType) : 'Practitioner';
  if (type === 'Practitioner') {
    const keys = identifierKeys('provider', contained?.identifier);
    return keys.length > 0 ? keys.map((key) => ({ key })) : [{ lost: 'contained' }];
  }
  if (type === 'Organization') return [{ lost: 'organization' }];
  if (type !== 'PractitionerRole') return [];
  // A role that refers to a role leads nowhere, so that this ends.
  const rest = objectsIn(resource.contained).filter(({ resourceType }) => resourceType === 'Practitioner');
  const targets = providerTargets(contained?.practitioner, { resource: { contained: rest }, base });
  return targets.length > 0 ? targets : [{ lost: 'role-without-practitioner' }];
}
