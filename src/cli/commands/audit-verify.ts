import 'reflect-metadata';
import { Command, InvalidArgumentError } from 'commander';
import type { TrailFault } from '../../access/audit/seal-chain.js';
import { MOST_FAULTS, type Verification, verifyTrail } from '../../access/audit/verify-trail.js';
import { readVault } from '../../vault/read-vault.js';
import { failed, withFaults } from '../output/failure.js';
import { examples } from '../output/help.js';
import { counted } from '../output/print.js';
import { withServiceData } from './service-data.js';

/** The exit code of a trail with faults, beside 1 of a command that could not do its work. */
const FAULTY = 2;

async function verify({ head, json }: { head?: string; json?: boolean }): Promise<void> {
  const result = await withServiceData(async (client, keys) => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const vault = await readVault(client, keys);
    return verifyTrail(client, (purpose, value) => vault.fingerprint(purpose, value), head);
  });
  const holds = result.faults.length === 0 && result.headHolds !== false;
  console.log(json ? JSON.stringify(result, null, 2) : inWords(result));
  process.exitCode = holds ? 0 : FAULTY;
}

/** Reads a head. @throws {InvalidArgumentError} when none looks so: a slip would say that the trail was cut */
function headIn(text: string): string {
  if (!/^\d+:[0-9a-f]{64}$/.test(text)) throw new InvalidArgumentError('Give it whole, as number:mac.');
  return text;
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

withFaults(new Command('notebridge audit verify'))
  .description('Finds what was changed, removed, inserted or reordered in the audit trail, and names it.')
  .option('--head <number:mac>', 'what an earlier run printed: proves that nothing was cut off the end since', headIn)
  .option('--json', 'print the outcome as JSON')
  .addHelpText(
    'after',
    `
It speaks to the database, by DATABASE_URL and DATA_KEYS as the service has them. Entries of the last second may have no
seal yet; what becomes of those is not found. Keep the head that it prints where the database's administrators can't
write.
Ends with 0 when all is as it was sealed, 2 when it is not, 1 when that could not be told.`,
  )
  .addHelpText('after', examples('audit verify'))
  .action(verify)
  .parseAsync()
  .catch(failed);
