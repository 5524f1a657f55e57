import type { PersonKind } from '../../../people/rules/person.js';
import {
  EXTERNAL_ID_MAX,
  isExternalId,
  missingField,
  PROFILE_FIELDS,
  PROFILE_RULES,
  PROVIDERS_MAX,
  type Profile,
  profileOf,
} from '../../../people/rules/person-field-rules.js';
import { isPlatformUuid } from '../../../platform/contract/wire-types.js';
import type { ProfileField } from '../../../words/field-words.js';
import { isPlaceholder, usableEmail } from './email-text.js';
import type { FileKind, ImportedPerson, ReadRow, RowCells } from './import-row.js';
import { type Rejection, rejection } from './rejection.js';

/** The texts of a person before any rule was applied; `providers` only if the source names them. */
export type PersonCandidate = Pick<ImportedPerson, 'kind'> & {
  [Field in keyof ImportedPerson]?: ImportedPerson[Field] | undefined;
};

/** Zero-width and other invisible characters, which make different ids look alike. */
const INVISIBLE = /\p{Cf}/u;

/** The form in which spreadsheets write a long number: its last digits are lost. */
const SCIENTIFIC = /^\d+(?:[.,]\d+)?E\+\d+$/i;

/** Rejects an external id that breaks the rule of the HTTP API, or only seems to be an id. */
export function idFault(id: string, field = 'externalId'): Rejection | undefined {
  if (id.trim() === '') return rejection('missing-field', { field });
  if (id.length > EXTERNAL_ID_MAX) return rejection('too-long', { field, limit: EXTERNAL_ID_MAX });
  if (/[\p{Cc}\p{Cs}]/u.test(id)) return rejection('bad-character', { field });
  if (INVISIBLE.test(id)) return rejection('invisible-character', { field });
  if (SCIENTIFIC.test(id)) return rejection('scientific-id', { field });
  return isExternalId(id) ? undefined : rejection('bad-id', { field });
}

/** True for an external id that an import may store and show. */
export function isImportableId(value: unknown): value is string {
  return typeof value === 'string' && !idFault(value);
}

/** An external id in one Unicode form (NFC), for comparison. */
export function canonicalId(id: string): string {
  return id.normalize('NFC');
}

/** The kind of people in a file, or the one in a cell if each row has its own. */
export function personKind(file: FileKind, cell = ''): PersonKind | undefined {
  const kind = file === 'providers' ? 'provider' : file === 'clients' ? 'client' : cell.toLowerCase();
  return kind === 'provider' || kind === 'client' ? kind : undefined;
}

export const UNKNOWN_KIND = rejection('wrong-type', { field: 'kind', expected: 'provider or client' });

function fieldFault(kind: PersonKind, profile: Profile, field: ProfileField): Rejection | undefined {
  const { max, isValid, rowCode } = PROFILE_RULES[field];
  const text = profile[field];
  if (text === undefined || isValid(text)) return undefined;
  if (text.length > max) return rejection('too-long', { field, limit: max });
  return rejection(/[\r\n]/.test(text) ? 'line-break' : rowCode, { field, kind });
}

function providersFault(providers: readonly string[] = []): Rejection | undefined {
  const field = 'providers';
  if (providers.length > PROVIDERS_MAX) return rejection('too-many-providers', { field });
  const wrong = providers.find((id) => idFault(id, field));
  return wrong === undefined ? undefined : idFault(wrong, field);
}

/**
 * The person to import, or the first fault of the candidate. Trims names, email and `platformUserId`, but no external
 * id. A provider needs an email, a client does not (spec, User management). Repeated providers count once.
 *
 * @param isPartial the source may leave out names and email, which are then empty
 */
export function validatePerson(candidate: PersonCandidate, isPartial = false): ImportedPerson | Rejection {
  const { kind, externalId = '' } = candidate;
  const profile = profileOf(candidate);
  const platformUserId = (candidate.platformUserId ?? '').trim();
  const providers = kind === 'client' && candidate.providers ? [...new Set(candidate.providers)] : undefined;
  const isLink = platformUserId === '' || isPlatformUuid(platformUserId);
  const missing = isPartial ? undefined : missingField(kind, profile);
  const [wrong] = PROFILE_FIELDS.flatMap((field) => fieldFault(kind, profile, field) ?? []);
  const fault =
    idFault(externalId) ??
    (missing && rejection('missing-field', { field: missing })) ??
    wrong ??
    providersFault(providers) ??
    (isLink ? undefined : rejection('bad-platform-user-id', { field: 'platformUserId' }));
  if (fault) return fault;
  return { kind, externalId, ...profile, ...(providers && { providers }), ...(platformUserId && { platformUserId }) };
}

/** The provider ids in a cell, separated by `|`. */
export function providerIds({ providers = '' }: RowCells): string[] {
  const ids = providers.split('|').map((id) => id.trim());
  return ids.filter((id) => id !== '');
}

/** The candidate that some texts describe. @param providers undefined if the source does not name them */
export function candidateOf(texts: RowCells, kind: PersonKind, providers?: readonly string[]): PersonCandidate {
  const { email = '', platformUserId = '' } = texts;
  return {
    ...texts,
    kind,
    email: usableEmail(email),
    providers: providers?.filter((id) => !isPlaceholder(id)),
    platformUserId: isPlaceholder(platformUserId) ? '' : platformUserId,
  };
}

/** True for a row without names that links its person, who must be known. */
export function isLinkOnly({ firstName, lastName, platformUserId }: RowCells): boolean {
  return !firstName && !lastName && !!platformUserId && !isPlaceholder(platformUserId);
}

/** The texts of a person. */
export function cellsOf({ providers, ...texts }: ImportedPerson): RowCells {
  return { ...texts, ...(providers && { providers: providers.join('|') }) };
}

/** The row of a validated person, or of a rejection with its known fields. An id that cannot be stored is left out. */
export function rowOf(
  line: number,
  outcome: ImportedPerson | Rejection,
  { kind, externalId, cells = {} }: { kind?: PersonKind; externalId?: string; cells?: RowCells } = {},
): ReadRow {
  if (!('code' in outcome)) return { type: 'row', line, is: 'person', person: outcome };
  const row = { type: 'row', line, is: 'rejected', kind, ...outcome, cells } as const;
  return isImportableId(externalId) ? { ...row, externalId } : row;
}
