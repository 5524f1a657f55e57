import type { Command } from 'commander';
import type { AuditResponse } from '../../audit/audit.dto.js';
import type { Api } from '../api/api.js';
import { examples } from '../output/help.js';
import { listing, valueOptions } from '../output/list-command.js';

const OPTIONS = valueOptions({
  '--client <externalId>': 'only entries about this client',
  '--provider <externalId>': 'only entries about this provider',
  '--session <id>': "only entries about this session: its id here or the platform's",
  '--key <id>': 'only actions by this caller: the id of a key, admin (ADMIN_API_KEY) or system (the service itself)',
  '--action <action>': 'only this action, such as "POST /v1/imports"',
  '--since <moment>': 'only entries since then, such as 2026-01-31',
  '--before <moment>': 'only entries before then',
});

const ABOUT_VERIFY = `
The command connects to the database with the service's DATABASE_URL and AUDIT_KEYS. Entries of the last second may not
be linked to the chain yet: the command does not notice if one of them was removed.
The file of --heads has one head per line: a line of the service's log, what AUDIT_HEADS_URL received, or number:MAC. It
proves that no entry up to these heads was removed, not even from the end of the audit log.
Exits 2 if the audit log has faults.`;

/** `notebridge audit` and `audit verify`. */
export function addAuditCommands(program: Command, api: Api): void {
  const group = program.command('audit').description('search and verify the audit log');
  const search = group
    .command('search', { isDefault: true })
    .description('list audit entries, newest first')
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
    none: 'No matching audit entries.',
  });

  group
    .command('verify')
    .description('find entries that were changed, removed or inserted')
    .option(
      '--heads <file>',
      'a file with heads (newest links of the chain) that you stored elsewhere; each must still be in the audit log',
    )
    .option('--json', 'print the result as JSON')
    .addHelpText('after', ABOUT_VERIFY)
    .addHelpText('after', examples('audit verify', 'audit verify --heads heads.log'))
    .action(async (options: { heads?: string; json?: boolean }) =>
      (await import('../data/audit-verify.js')).verify(options),
    );
}
