import type { PersonKind } from '../../../people/model/person.js';
import {
  EMAIL_MAX,
  EXTERNAL_ID_MAX,
  isEmailAddress,
  isExternalId,
  isPersonName,
  NAME_MAX,
  PROVIDERS_MAX,
} from '../../../people/model/person-field-rules.js';
import { type ImportedPerson, type ReadRow, rawRow } from './import-row.js';
import { type Rejection, rejection } from './rejection.js';

/** What a row says about a person, in text, before any rule was applied; `providers` only where the source names them. */
export type PersonCandidate = { kind: PersonKind } & { [Field in keyof ImportedPerson]?: ImportedPerson[Field] };

/** Zero-width and other invisible characters, by which two ids look alike and are not. */
const INVISIBLE = /\p{Cf}/u;

/** An external id that may be stored and shown: the same rule as at the HTTP edge, and nothing invisible. */
export function isImportableId(value: unknown): value is string {
  return isExternalId(value) && !INVISIBLE.test(value);
}

function idFault(field: string, id: string): Rejection | undefined {
  if (id.trim() === '') return rejection('missing-field', { field });
  if (id.length > EXTERNAL_ID_MAX) return rejection('too-long', { field, limit: EXTERNAL_ID_MAX });
  if (/[\p{Cc}\p{Cs}]/u.test(id)) return rejection('bad-character', { field });
  if (INVISIBLE.test(id)) return rejection('invisible-character', { field });
  return isExternalId(id) ? undefined : rejection('bad-id', { field });
}

function nameFault(field: string, name: string): Rejection | undefined {
  if (name === '') return rejection('missing-field', { field });
  if (name.length > NAME_MAX) return rejection('too-long', { field, limit: NAME_MAX });
  return isPersonName(name) ? undefined : rejection('bad-character', { field });
}

function emailFault(kind: PersonKind, email: string): Rejection | undefined {
  const field = 'email';
  if (email === '') return kind === 'provider' ? rejection('missing-field', { field }) : undefined;
  if (email.length > EMAIL_MAX) return rejection('too-long', { field, limit: EMAIL_MAX });
  return isEmailAddress(email) ? undefined : rejection('bad-email', { field });
}

function providersFault(providers: readonly string[]): Rejection | undefined {
  const field = 'providers';
  if (providers.length > PROVIDERS_MAX) return rejection('too-many-providers', { field });
  const wrong = providers.find((id) => !isImportableId(id));
  return wrong === undefined ? undefined : idFault(field, wrong);
}

/**
 * A person to import, or the first thing that is wrong with it. Names and the email are trimmed, the external id is
 * taken as it is; a provider needs an email, a client does not (spec, User management); repeated providers count once.
 */
export function validatePerson(candidate: PersonCandidate): ImportedPerson | Rejection {
  const { kind, externalId = '' } = candidate;
  const firstName = (candidate.firstName ?? '').trim();
  const lastName = (candidate.lastName ?? '').trim();
  const email = (candidate.email ?? '').trim();
  const providers = kind === 'client' && candidate.providers ? [...new Set(candidate.providers)] : undefined;

  const fault =
    idFault('externalId', externalId) ??
    nameFault('firstName', firstName) ??
    nameFault('lastName', lastName) ??
    emailFault(kind, email) ??
    providersFault(providers ?? []);
  if (fault) return fault;
  const person: ImportedPerson = { kind, externalId, firstName, lastName };
  if (email !== '') person.email = email;
  if (providers) person.providers = providers;
  return person;
}

/**
 * The row that a person, or what is wrong with it, makes.
 *
 * @param raw its cells, or its text where it has none
 * @param who the kind and external id of a rejected one, as far as they are known; an id that can't be shown is left out
 */
export function rowOf(
  { line, span = 1 }: { line: number; span?: number },
  raw: readonly string[] | string,
  outcome: ImportedPerson | Rejection,
  who?: { kind?: PersonKind; externalId?: unknown },
): ReadRow {
  const text = rawRow(raw);
  if (!('code' in outcome)) return { type: 'row', line, span, raw: text, ok: true, person: outcome };
  const known = {
    ...(who?.kind && { kind: who.kind }),
    ...(isImportableId(who?.externalId) && { externalId: who.externalId }),
  };
  return { type: 'row', line, span, raw: text, ok: false, ...known, ...outcome };
}
