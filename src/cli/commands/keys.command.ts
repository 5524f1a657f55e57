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
The command connects to the database with the service's DATABASE_URL and keys. Before it, in every process, add the new
key as the last of its setting and restart; then make it the first and restart again. Run the command while the service
runs; you can stop it and run it again at any time.
Exits 2 if values still have an old key or have a fault.`;

const ABOUT_AUDIT_ROTATION = `
Needs DATABASE_OWNER_URL if DATABASE_URL names a role that does not own the tables. Audit entries that someone has
changed keep their old MAC, so that "audit verify" still finds them.`;

/** The subcommands of `keys rotate`, with their descriptions. */
const ROTATIONS: Record<RotationKind, string> = {
  data: 'encrypt all data with the first key of DATA_KEYS',
  audit: 'sign the audit log, API keys and browser sessions with the first key of AUDIT_KEYS',
};

/** `notebridge keys …` */
export function addKeyCommands(program: Command, api: Api): void {
  const keys = program
    .command('keys')
    .description('manage API keys, and rotate the keys that encrypt and sign stored data');
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
    .argument('<name>', 'what uses the key, such as ehr; not the name of a person')
    .addOption(new Option('--scopes <scopes...>', 'what the key may do').choices(SCOPES).makeOptionMandatory())
    .addOption(expiresAt())
    .option('--no-expiry', 'never expire; by default, a key expires after a year')
    .option(...JSON_ANSWER)
    .addHelpText('after', examples('keys create ehr --scopes people:read people:write'))
    .action(async (name: string, { json, scopes, expiry, expiresAt = expiry ? undefined : null }: NewKeyOptions) =>
      printAnswer(await api.post<NewApiKeyResponse>(KEYS, { name, scopes, expiresAt }), json, ({ key }) => key),
    );

  const rotation = keys
    .command('rotate')
    .description('replace an API key, and show the new one once; or (data, audit) rotate a key of the service')
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
      .option('--dry-run', 'only count how many values each key protects')
      .option('--json', 'print the result as JSON, and the progress to stderr')
      .addHelpText('after', kind === 'audit' ? ABOUT_ROTATION + ABOUT_AUDIT_ROTATION : ABOUT_ROTATION)
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
