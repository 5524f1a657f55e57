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
const expiresAt = () => momentOption('--expires-at <moment>', 'when it expires, such as 2027-01-31');
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
"audit" needs DATABASE_OWNER_URL where DATABASE_URL is another role's. What was changed or removed keeps its old MAC.
Exits 2 if values are left or have a fault.`;

/** The words after `keys rotate`, and what each does. */
const ROTATIONS: Record<RotationKind, string> = {
  data: 'encrypt all data with the first key of DATA_KEYS',
  fingerprints: 'make all fingerprints with the first key of FINGERPRINT_KEYS',
  audit: 'sign the audit log, API keys and browser sessions with the first key of AUDIT_KEYS',
};

/** `notebridge keys …` */
export function addKeyCommands(program: Command, api: Api): void {
  const keys = program.command('keys').description('manage API keys, and rotate the encryption keys');
  const list = keys
    .command('list', { isDefault: true })
    .description('list keys, including revoked ones; a key itself is shown only at its creation')
    .addHelpText('after', examples('keys'));
  listing<ApiKeyResponse>(list, api, {
    from: KEYS,
    limit: 50,
    row: ({ id, name, prefix, createdAt: made, expiresAt, revokedAt: revoked, lastUsedAt, scopes, warnings }) => {
      const [expires, used, note] = [expiresAt, lastUsedAt, warnings.join(' ')];
      return { id, name, key: `${prefix}…`, made, expires, revoked, 'last used': used, note, scopes: scopes.join(' ') };
    },
    none: 'No keys yet. ADMIN_API_KEY is not in this list.',
  });

  keys
    .command('create')
    .description('create a key and show it once')
    .argument('<name>', 'its purpose; not the name of a person')
    .addOption(new Option('--scopes <scopes...>', 'the scopes of the key').choices(SCOPES).makeOptionMandatory())
    .addOption(expiresAt())
    .option('--no-expiry', 'the key never expires; otherwise it expires after a year')
    .option(...JSON_ANSWER)
    .addHelpText('after', examples('keys create ehr --scopes people:read people:write'))
    .action(async (name: string, { json, scopes, expiry, expiresAt = expiry ? undefined : null }: NewKeyOptions) =>
      printAnswer(await api.post<NewApiKeyResponse>(KEYS, { name, scopes, expiresAt }), json, ({ key }) => key),
    );

  const rotation = keys
    .command('rotate')
    .description('create the successor of an API key and show it once, or rotate keys of the service')
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
    .description('revoke a key immediately')
    .argument('<id>')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', examples('keys revoke 7b0f5a3e-0000-4000-8000-000000000000'))
    .action(async (id: string, { json }: { json?: boolean }) => {
      await api.send('DELETE', pathOf(id));
      printAnswer({ id, revoked: true }, json, () => 'Revoked.');
    });

  for (const [kind, description] of Object.entries(ROTATIONS)) {
    rotation
      .command(kind)
      .description(description)
      .option('--dry-run', 'only count the uses of each key')
      .option('--json', 'print the outcome as JSON, and the progress to stderr')
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
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Say whole seconds.');
  return Number(text);
}
