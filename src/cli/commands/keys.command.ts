import { type Command, InvalidArgumentError, Option } from 'commander';
import { SCOPES } from '../../access/identity/scope.js';
import type { ApiKeyResponse, NewApiKeyResponse } from '../../access/keys/api-keys.dto.js';
import type { Api } from '../api/api.js';
import type { RotationKind, RotationOptions } from '../data/rotate-keys.js';
import { examples } from '../output/help.js';
import { listing } from '../output/list-command.js';
import { momentOption } from '../output/moment-option.js';
import { printAnswer } from '../output/print.js';

const KEYS = '/v1/api-keys';
const expiresAt = () => momentOption('--expires-at <moment>', 'expiry date, such as 2027-01-31');
const JSON_ANSWER = ['--json', "print the service's answer"] as const;
const pathOf = (id: string): string => `${KEYS}/${encodeURIComponent(id)}`;

interface NewKeyOptions {
  scopes: string[];
  expiresAt?: string | null;
  expiry: boolean;
  json?: boolean;
}

const ABOUT_ROTATION = `
It connects to the database with the service's DATABASE_URL and keys. First add the new key last in every process, then
put it first in every process; then run this while they run. It can be stopped and run again at any time.
"audit" needs DATABASE_OWNER_URL if DATABASE_URL names another role. Changed entries keep their old MAC.
Exits 2 if values are left or have a fault.`;

/** The subcommands of `keys rotate`, with their descriptions. */
const ROTATIONS: Record<RotationKind, string> = {
  data: 'encrypt all data with the first key of DATA_KEYS',
  fingerprints: 'recompute all fingerprints with the first key of FINGERPRINT_KEYS',
  audit: 'sign the audit log, API keys and browser sessions with the first key of AUDIT_KEYS',
};

/** `notebridge keys …` */
export function addKeyCommands(program: Command, api: Api): void {
  const keys = program.command('keys').description('API keys, and the keys that encrypt and sign stored data');
  const list = keys
    .command('list', { isDefault: true })
    .description('list API keys, including revoked ones; a key itself is shown only once, when it is created')
    .addHelpText('after', examples('keys'));
  listing<ApiKeyResponse>(list, api, {
    from: KEYS,
    limit: 50,
    row: ({ id, name, prefix, createdAt: made, expiresAt, revokedAt: revoked, lastUsedAt, scopes, warnings }) => {
      const [expires, used, note] = [expiresAt, lastUsedAt, warnings.join(' ')];
      return { id, name, key: `${prefix}…`, made, expires, revoked, 'last used': used, note, scopes: scopes.join(' ') };
    },
    none: 'There are no API keys. ADMIN_API_KEY is not in this list.',
  });

  keys
    .command('create')
    .description('create an API key, and show it once')
    .argument('<name>', 'its purpose; not a person')
    .addOption(new Option('--scopes <scopes...>', 'its permissions').choices(SCOPES).makeOptionMandatory())
    .addOption(expiresAt())
    .option('--no-expiry', 'never expire; by default, a key expires after a year')
    .option(...JSON_ANSWER)
    .addHelpText('after', examples('keys create ehr --scopes people:read people:write'))
    .action(async (name: string, { json, scopes, expiry, expiresAt = expiry ? undefined : null }: NewKeyOptions) =>
      printAnswer(await api.post<NewApiKeyResponse>(KEYS, { name, scopes, expiresAt }), json, ({ key }) => key),
    );

  const rotation = keys
    .command('rotate')
    .description('replace an API key, and show the new one once; or rotate the keys of the service')
    .argument('<id>')
    .option('--overlap-seconds <seconds>', 'how long the old key is still accepted; a day by default', secondsIn)
    .addOption(expiresAt())
    .option(...JSON_ANSWER)
    .addHelpText('after', examples('keys rotate 7b0f5a3e-0000-4000-8000-000000000000 --overlap-seconds 3600'))
    .action(async (id: string, { json, ...body }: { overlapSeconds?: number; expiresAt?: string; json?: boolean }) =>
      printAnswer(await api.post<NewApiKeyResponse>(`${pathOf(id)}/rotate`, body), json, ({ key }) => key),
    );

  keys
    .command('revoke')
    .description('revoke an API key immediately')
    .argument('<id>')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples('keys revoke 7b0f5a3e-0000-4000-8000-000000000000'))
    .action(async (id: string, { json }: { json?: boolean }) => {
      await api.send('DELETE', pathOf(id));
      printAnswer({ id, revoked: true }, json, () => 'Revoked.');
    });

  for (const [kind, description] of Object.entries(ROTATIONS)) {
    rotation
      .command(kind)
      .description(description)
      .option('--dry-run', 'only count the values of each key')
      .option('--json', 'print the result as JSON, and the progress to stderr')
      .addHelpText('after', ABOUT_ROTATION)
      .addHelpText('after', examples(`keys rotate ${kind} --dry-run`, `keys rotate ${kind}`))
      .action(async (_: unknown, command: Command) =>
        // Both commands have --json, which is then the outer one's.
        (await import('../data/rotate-keys.js')).rotateKeys(
          kind as RotationKind,
          command.optsWithGlobals<RotationOptions>(),
        ),
      );
  }
}

function secondsIn(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of seconds.');
  return Number(text);
}
