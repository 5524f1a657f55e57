import type { PoolClient } from 'pg';
import { lostHint } from '../parse/fhir/lost-hint.js';
import type { ProviderReferences } from '../parse/fhir/provider-references.js';
import { KnownProviders } from './known-providers.js';
import type { ResolvedList, StagingRepository } from './staging.repository.js';

/** Ids and lists that one statement handles. */
const BATCH = 2_000;

/**
 * Gives the clients of a FHIR import the providers that their references mean.
 *
 * @param adds in an upsert, only a generalPractitioner replaces a client's providers
 * @returns the number of unresolved references
 */
export async function resolveReferences(
  tx: PoolClient,
  importId: string,
  references: ProviderReferences,
  staging: StagingRepository,
  adds: boolean,
): Promise<number> {
  const [mirrorable, rejected] = [new Set<string>(), new Set<string>()];
  for (const ids of batches(references.candidates())) {
    const known = new KnownProviders(tx, importId);
    await known.lookUp(ids);
    for (const id of ids) {
      if (known.of(id) === 'known') mirrorable.add(id);
      if (known.of(id) === 'rejected') rejected.add(id);
    }
  }
  let lost = 0;
  for (const clients of batches(references.resolve({ mirrorable, rejected }))) {
    const lists = clients.map(([externalId, list]): ResolvedList => {
      for (const count of list.lost.values()) lost += count;
      const hint = list.providers.length === 0 ? lostHint(list.lost) : null;
      return { externalId, providers: list.providers, adds: adds && !list.replaces, hint };
    });
    await staging.giveProviders(tx, importId, lists);
  }
  return lost;
}

function* batches<T>(items: Iterable<T>): Generator<T[]> {
  let batch: T[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
