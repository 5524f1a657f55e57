import type { Command } from 'commander';
import type { AuditResponse } from '../../access/audit/audit.dto.js';
import type { Api } from '../api/api.js';
import { examples } from '../output/help.js';
import { listing, valued } from '../output/list-command.js';

const OPTIONS = valued({
  '--client <externalId>': 'only what was done to, or seen of, this client',
  '--provider <externalId>': 'likewise a provider',
  '--session <id>': "likewise a session, by our id or the platform's",
  '--key <id>': 'only what this key did: its id, admin or system',
  '--action <action>': 'only this, such as "POST /v1/imports"',
  '--since <moment>': 'only what came since, such as 2026-01-31',
  '--before <moment>': 'only what came before',
});

/** `notebridge audit` and `audit verify`. */
export function addAuditCommands(program: Command, api: Api): void {
  const group = program.command('audit').description('the trail of who did and who saw what');
  const search = group
    .command('search', { isDefault: true })
    .description('who did what and who saw what, the newest first')
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
    .executableDir(__dirname)
    .command('verify', 'find what was changed, removed or inserted in it', { executableFile: 'audit-verify.js' });
}
