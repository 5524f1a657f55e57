import { type Command, InvalidArgumentError } from 'commander';
import type { AuditResponse } from '../../access/audit/audit.dto.js';
import type { Api } from '../api/api.js';
import { examples } from '../output/help.js';
import { listing, valued } from '../output/list-command.js';

const OPTIONS = valued({
  '--client <externalId>': 'only what was done to, or seen of, this client',
  '--provider <externalId>': 'only what was done to, or seen of, this provider',
  '--session <id>': "only what was done to, or seen of, this session: its id here or the platform's",
  '--key <id>': 'only what this key did: its id, admin or system',
  '--action <action>': 'only this, such as "POST /v1/imports"',
  '--since <moment>': 'only what came since, such as 2026-01-31',
  '--before <moment>': 'only what came before',
});

const ABOUT_VERIFY = `
It connects to the database with the service's DATABASE_URL and DATA_KEYS. Entries of the last second may have no seal
yet; changes to those are not found. Keep the head that it prints where the database's administrators cannot write.
It ends with 2 if the trail has faults.`;

/** `notebridge audit` and `audit verify`. */
export function addAuditCommands(program: Command, api: Api): void {
  const group = program.command('audit').description('the trail of who did and who saw what');
  const search = group
    .command('search', { isDefault: true })
    .description('who did what and who saw what, newest first')
    .addHelpText('after', examples('audit --client C-1002', 'audit --key admin --since 2026-01-31 --limit all'));
  listing<AuditResponse>(search, api, {
    from: '/v1/audit',
    options: OPTIONS,
    parameters: { key: 'keyId', since: 'after' },
    limit: 100,
    row: ({ at, keyName, onBehalfOf, action, outcome, subjects, counts }) => ({
      at,
      key: keyName,
      'on behalf of': onBehalfOf,
      action,
      outcome,
      about: [...Object.entries(subjects), ...Object.entries(counts ?? {})]
        .map(([kind, ids]) => `${kind} ${Array.isArray(ids) ? ids.join(',') : `(${ids})`}`)
        .join(' '),
    }),
    none: 'The trail has no such entries.',
  });

  group
    .command('verify')
    .description('find and name what was changed, removed, inserted or reordered in the trail')
    .option('--head <number:mac>', 'what an earlier run printed: proves that nothing was cut off the end since', headIn)
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', ABOUT_VERIFY)
    .addHelpText('after', examples('audit verify'))
    .action(async (options: { head?: string; json?: boolean }) => (await import('./audit-verify.js')).verify(options));
}

/** Reads a head. @throws {InvalidArgumentError} for other text: a typing error would look like a trail that was cut */
function headIn(text: string): string {
  if (!/^\d+:[0-9a-f]{64}$/.test(text)) throw new InvalidArgumentError('Give it whole, as number:mac.');
  return text;
}
