import type { Command } from 'commander';
import type { AuditResponse } from '../../audit/audit.dto.js';
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
It connects to the database with the service's DATABASE_URL and AUDIT_KEYS. Entries of the last second may not be linked
yet: removed ones are not detected. FILE holds heads, one a line: lines of the service's log, what AUDIT_HEADS_URL
received, or number:MAC. It shows that nothing was removed from the end of the log since.
It ends with 2 if the audit log has faults.`;

/** `notebridge audit` and `audit verify`. */
export function addAuditCommands(program: Command, api: Api): void {
  const group = program.command('audit').description('the log of who did and who saw what');
  const search = group
    .command('search', { isDefault: true })
    .description('who did what and who saw what, newest first')
    .addHelpText('after', examples('audit --client C-1002', 'audit --key admin --since 2026-01-31 --limit all'));
  listing<AuditResponse>(search, api, {
    from: '/v1/audit',
    options: OPTIONS,
    parameters: { key: 'keyId', since: 'after' },
    limit: 100,
    row: ({ at, keyName, onBehalfOf, summary, outcome, subjects, ranges }) => ({
      at,
      who: keyName,
      'on behalf of': onBehalfOf,
      did: summary,
      outcome,
      about: [
        ...Object.entries(subjects).map(([kind, ids]) => `${kind} ${ids.join(',')}`),
        ...Object.entries(ranges).map(([kind, { count, first, last }]) => `${kind} ${first} … ${last} (${count})`),
      ].join(' '),
    }),
    none: 'The audit log has no such entries.',
  });

  group
    .command('verify')
    .description('find and name what was changed, removed or inserted in the audit log')
    .option('--heads <file>', 'heads that were kept elsewhere: all must be part of the audit log')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', ABOUT_VERIFY)
    .addHelpText('after', examples('audit verify', 'audit verify --heads heads.log'))
    .action(async (options: { heads?: string; json?: boolean }) =>
      (await import('../data/audit-verify.js')).verify(options),
    );
}
