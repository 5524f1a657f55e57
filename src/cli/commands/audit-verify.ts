import 'reflect-metadata';
import type { TrailFault } from '../../access/audit/seal-chain.js';
import { MOST_FAULTS, type Verification, verifyTrail } from '../../access/audit/verify-trail.js';
import { readVault } from '../../vault/read-vault.js';
import { counted } from '../output/print.js';
import { withServiceData } from './service-data.js';

/** `notebridge audit verify`: ends with 2 if the trail has faults. */
export async function verify({ head, json }: { head?: string; json?: boolean }): Promise<void> {
  const result = await withServiceData(async (client, keys) => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const vault = await readVault(client, keys.DATA_KEYS);
    return verifyTrail(client, (purpose, value) => vault.fingerprint(purpose, value), head);
  });
  const holds = result.faults.length === 0 && result.headHolds !== false;
  console.log(json ? JSON.stringify(result, null, 2) : inWords(result));
  process.exitCode = holds ? 0 : 2;
}

const SENTENCES: Record<TrailFault['fault'], (what: string, seal: string) => string> = {
  changed: (what) => `✗ ${what} was changed.`,
  removed: (what, seal) => `✗ ${what}${seal} was removed.`,
  inserted: (what) => `✗ ${what} was inserted: nothing that was sealed knows it.`,
  'sealed-twice': (what, seal) => `✗ ${what}${seal} was sealed before.`,
};

function inWords({ seals, entries, unsealed, head, headHolds, faults }: Verification): string {
  const lines = faults.map(({ entry, seal, fault }) => {
    const what = entry === undefined ? `Seal ${seal}` : `Entry ${entry}`;
    return SENTENCES[fault](what, entry === undefined || seal === undefined ? '' : ` of seal ${seal}`);
  });
  if (faults.length === MOST_FAULTS) lines.push('… and more.');
  const counts = `${counted(entries, 'entry', 'entries')} in ${counted(seals, 'seal')}`;
  const rest = unsealed === 0 ? '' : ` ${counted(unsealed, 'entry', 'entries')} of the last moment wait for a seal.`;
  if (faults.length === 0) lines.push(`✓ ${counts}: nothing was changed, removed or inserted.${rest}`);
  else lines.push(`${counts}; ${counted(faults.length, 'fault')}.${rest}`);
  if (headHolds === true)
    lines.push('✓ The head that was given is part of the trail, so nothing was cut off before it.');
  if (headHolds === false)
    lines.push(
      '✗ The head that was given is not part of the trail: its end was cut off, or its beginning by retention.',
    );
  lines.push(`Head: ${head}`);
  return lines.join('\n');
}
