import { useQueries, useQuery } from '@tanstack/react-query';
import { api, body } from '../../api/client.js';
import { useScopes } from '../../api/session.js';
import { keyOf, nameOf, type PersonKey } from './person.js';

/** Ids of each kind per request, as the API allows. */
const MAX_IDS = 200;

interface Wanted {
  person: PersonKey;
  resolve: (name: string) => void;
  reject: (error: unknown) => void;
}

let wanted: Wanted[] = [];

/** The name of a person; empty without one. Everyone who is asked for at the same time is read in one request. */
function readName(person: PersonKey): Promise<string> {
  return new Promise((resolve, reject) => {
    if (wanted.length === 0) setTimeout(readWanted);
    wanted.push({ person, resolve, reject });
  });
}

async function readWanted(): Promise<void> {
  const batch = wanted;
  wanted = [];
  try {
    const names = await namesOf(batch.map(({ person }) => person));
    for (const { person, resolve } of batch) resolve(names.get(keyOf(person)) ?? '');
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}

async function namesOf(people: readonly PersonKey[]): Promise<Map<string, string>> {
  const idsOf = (kind: PersonKey['kind']) => [
    ...new Set(people.flatMap((person) => (person.kind === kind ? person.externalId : []))),
  ];
  const [providers, clients] = [idsOf('provider'), idsOf('client')];
  const names = new Map<string, string>();
  for (let from = 0; from < Math.max(providers.length, clients.length); from += MAX_IDS) {
    const [part, rest] = [providers, clients].map((ids) => ids.slice(from, from + MAX_IDS));
    const { items } = await body(api.POST('/v1/people/names', { body: { providers: part, clients: rest } }));
    for (const person of items) names.set(keyOf(person), nameOf(person));
  }
  return names;
}

const queryOf = (person: PersonKey, enabled: boolean) => ({
  queryKey: ['people', 'name', keyOf(person)],
  queryFn: () => readName(person),
  enabled,
  // The page shows the ids until then.
  retry: false,
});

/** The name of a person: undefined until read, and for a caller who may not read it; empty without one. */
export function useName(person: PersonKey): string | undefined {
  return useQuery(queryOf(person, useScopes().includes('people:read'))).data;
}

/** The names of people in their order, each as `useName` gives it. */
export function useNames(people: readonly PersonKey[]): (string | undefined)[] {
  const mayRead = useScopes().includes('people:read');
  return useQueries({ queries: people.map((person) => queryOf(person, mayRead)), combine: namesIn });
}

const namesIn = (results: readonly { data: string | undefined }[]) => results.map(({ data }) => data);
