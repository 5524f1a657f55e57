import fc from 'fast-check';
import type { PersonKind } from '../../../src/people/rules/person.js';

/** A person of a history, such as `client/c-1`. */
export type Key = `${PersonKind}/${string}`;

export interface Profile {
  email: string | null;
  firstName: string;
  lastName: string;
  /** Empty for providers. */
  providers: string[];
}

/** The statement of one row about a person. A null profile means that the person does not exist. */
export interface Statement {
  key: Key;
  profile: Profile | null;
}

/** A row before it is written to a file. */
export interface Row extends Statement {
  /** When FHIR says that it was changed, and the version. */
  seconds: number;
  version: number;
}

export interface File {
  type: 'text/csv' | 'application/fhir+json';
  kind: 'providers' | 'clients' | 'fhir';
  text: string;
}

/** The last one is named only by files. */
export const PROVIDERS = ['p-1', 'p-2', 'p-3'];
/** One id is the beginning of another, so that a cut turns one into the other. */
export const CLIENTS = ['c-1', 'c-12', 'c-3', 'c-4'];
/** These have no email, so that the platform cannot be asked whether they exist. */
const WITHOUT_EMAIL = ['c-3', 'c-4'];

export const kindOf = (key: Key) => key.slice(0, key.indexOf('/')) as PersonKind;
export const idOf = (key: Key) => key.slice(key.indexOf('/') + 1);

/** @param version makes another name */
export function profileOf(key: Key, version: number, providers: string[]): Profile {
  const id = idOf(key);
  return {
    email: WITHOUT_EMAIL.includes(id) ? null : `${id}@example.org`,
    firstName: ['Ann', 'Bea'][version] ?? 'Cy',
    lastName: 'Lee',
    providers: kindOf(key) === 'client' ? providers : [],
  };
}

export const anyProviders = fc.constantFrom<string[]>(['p-1'], ['p-2'], ['p-1', 'p-2'], ['p-2', 'p-1'], ['p-3']);
const anyOf = (kind: PersonKind) =>
  fc.constantFrom(...(kind === 'provider' ? PROVIDERS : CLIENTS)).map((id): Key => `${kind}/${id}`);
export const anyKey = fc.oneof(anyOf('provider'), { arbitrary: anyOf('client'), weight: 3 });

const rowOf = (key: fc.Arbitrary<Key>, mayBeGone: boolean): fc.Arbitrary<Row> =>
  fc
    .record({
      key,
      name: fc.nat(1),
      providers: anyProviders,
      isGone: mayBeGone ? fc.nat(3).map((one) => one === 0) : fc.constant(false),
      seconds: fc.nat(2),
      version: fc.integer({ min: 1, max: 3 }),
    })
    .map(({ key, name, providers, isGone, ...version }) => ({
      key,
      profile: isGone ? null : profileOf(key, name, providers),
      ...version,
    }));

const COLUMNS = ['externalId', 'email', 'firstName', 'lastName', 'providers'] as const;

/** Writes CSV without quotes. */
function csvText(rows: readonly Row[], columns: readonly string[], splits: boolean): string {
  const lines = rows.flatMap(({ key, profile }) => {
    if (!profile) return [];
    const lists = splits ? profile.providers.map((id) => [id]) : [profile.providers];
    return (kindOf(key) === 'provider' ? [[]] : lists).map((providers: string[]) => {
      const cells: Record<string, string> = {
        ...profile,
        externalId: idOf(key),
        email: profile.email ?? '',
        providers: providers.join('|'),
      };
      return columns.map((column) => cells[column]).join(',');
    });
  });
  return [columns.join(','), ...lines].join('\n');
}

function fhirText(rows: readonly Row[]): string {
  const at = (seconds: number) => `2026-01-01T00:00:0${seconds}Z`;
  const entries = rows.map(({ key, profile, seconds, version }) => {
    const isClient = kindOf(key) === 'client';
    const [id, resourceType] = [idOf(key), isClient ? 'Patient' : 'Practitioner'];
    if (!profile) {
      const response = { status: '204', lastModified: at(seconds), etag: `W/"${version}"` };
      return { request: { method: 'DELETE', url: `${resourceType}/${id}` }, response };
    }
    const resource = {
      ...{ resourceType, id, meta: { lastUpdated: at(seconds), versionId: String(version) } },
      name: [{ given: [profile.firstName], family: profile.lastName }],
      ...(profile.email && { telecom: [{ system: 'email', value: profile.email }] }),
      ...(isClient && { generalPractitioner: profile.providers.map((one) => ({ reference: `Practitioner/${one}` })) }),
    };
    return { request: { method: 'PUT', url: `${resourceType}/${id}` }, resource };
  });
  return JSON.stringify({ resourceType: 'Bundle', type: 'history', entry: entries });
}

/** A CSV file of one kind, in any order, with repeated rows, cut anywhere or not. */
const anyCsv: fc.Arbitrary<File> = fc.constantFrom<PersonKind>('provider', 'client', 'client').chain((kind) =>
  fc
    .record({
      rows: fc.array(rowOf(anyOf(kind), false), { minLength: 1, maxLength: 4 }),
      columns: fc.shuffledSubarray(kind === 'client' ? [...COLUMNS] : COLUMNS.slice(0, 4), {
        minLength: kind === 'client' ? 5 : 4,
      }),
      splits: fc.boolean(),
      cut: fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, fc.nat(60)),
    })
    .map(({ rows, columns, splits, cut }): File => {
      const text = csvText(rows, columns, splits);
      return { type: 'text/csv', kind: `${kind}s`, text: cut === 0 ? text : text.slice(0, -cut) };
    }),
);

const anyFhir: fc.Arbitrary<File> = fc
  .array(rowOf(anyKey, true), { minLength: 1, maxLength: 4 })
  .map((rows): File => ({ type: 'application/fhir+json', kind: 'fhir', text: fhirText(rows) }));

export const anyFile = fc.oneof({ arbitrary: anyCsv, weight: 3 }, { arbitrary: anyFhir, weight: 1 });

/**
 * The statements of a file about each person that it names, as its sender would read them.
 *
 * @param without lines of a CSV file that do not count
 */
export function statementsIn(file: File, without: readonly number[] = []): Map<Key, Profile | null> {
  return file.kind === 'fhir' ? statementsInFhir(file.text) : statementsInCsv(file, without);
}

function statementsInCsv({ kind, text }: File, without: readonly number[]): Map<Key, Profile> {
  const stated = new Map<Key, Profile>();
  const [header = '', ...lines] = text.split('\n');
  const columns = header.split(',');
  for (const [place, line] of lines.entries()) {
    const cells = line.split(',');
    if (cells.length !== columns.length || without.includes(place + 2)) continue;
    const cell = (name: string) => cells[columns.indexOf(name)] ?? '';
    const key: Key = kind === 'clients' ? `client/${cell('externalId')}` : `provider/${cell('externalId')}`;
    const profile: Profile = {
      ...{ email: cell('email') || null, firstName: cell('firstName'), lastName: cell('lastName') },
      providers: cell('providers').split('|').filter(Boolean),
    };
    if (!idOf(key) || !profile.firstName || !profile.lastName || (kind === 'providers' && !profile.email)) continue;
    const first = stated.get(key);
    if (!first) stated.set(key, profile);
    else if (sameName(first, profile)) first.providers = [...new Set([...first.providers, ...profile.providers])];
  }
  return stated;
}

function sameName(a: Profile, b: Profile): boolean {
  return a.email === b.email && a.firstName === b.firstName && a.lastName === b.lastName;
}

interface Entry {
  request: { method: string; url: string };
  response?: { lastModified: string; etag: string };
  resource?: {
    id: string;
    meta: { lastUpdated: string; versionId: string };
    name: [{ given: [string]; family: string }];
    telecom?: [{ value: string }];
    generalPractitioner?: { reference: string }[];
  };
}

function statementsInFhir(text: string): Map<Key, Profile | null> {
  const newest = new Map<Key, { rank: string; profile: Profile | null }>();
  const entries = (JSON.parse(text) as { entry: Entry[] }).entry;
  for (const { request, response, resource } of entries) {
    const [type, id] = request.url.split('/') as [string, string];
    const key: Key = type === 'Patient' ? `client/${id}` : `provider/${id}`;
    const version = resource?.meta.versionId ?? /\d+/.exec(response?.etag ?? '')?.[0];
    const rank = `${resource?.meta.lastUpdated ?? response?.lastModified} ${version}`;
    const name = resource?.name[0];
    const profile = resource && {
      ...{ email: resource.telecom?.[0].value ?? null, firstName: name?.given[0] ?? '', lastName: name?.family ?? '' },
      providers: (resource.generalPractitioner ?? []).map(({ reference }) =>
        reference.slice(reference.indexOf('/') + 1),
      ),
    };
    const known = newest.get(key);
    // The first entry of a history is the newest.
    if (!known || known.rank < rank) newest.set(key, { rank, profile: profile ?? null });
  }
  return new Map([...newest].map(([key, { profile }]) => [key, profile]));
}
