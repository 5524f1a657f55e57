import { readFileSync } from 'node:fs';
import { Env, validateEnv } from '../../../src/config/env.js';
import { codes, table } from './table.js';

const HEAD = `# Settings

For the operator: every setting, with its default and its rule. Set them in the environment or in \`.env\`, which \`npm start\` and docker compose read; the environment
wins. A start with invalid settings fails and names each one.
`;

const defaults = new Env() as unknown as Record<string, unknown>;

const REQUIRED = {
  PLATFORM_BASE_URL: 'https://api.platform.example',
  PLATFORM_API_KEY: 'key',
  PLATFORM_WEBHOOK_SECRET: 'a-webhook-secret-of-more-than-32-letters',
  ADMIN_API_KEY: 'an-admin-key-of-more-than-32-letters-and-9',
};

/** A value that almost no setting accepts. */
const WRONG = '\u0001';

/** The rule of a setting, from the error message of a start; empty if any text is valid. */
function ruleOf(name: string): string {
  try {
    validateEnv({ ...REQUIRED, [name]: WRONG });
    return '';
  } catch (error) {
    const line = (error as Error).message.split('\n').find((each) => each.startsWith(`  ${name} `)) ?? '';
    // The outcome of running the wrong value as a command says nothing about the setting.
    return line.slice(name.length + 3).replace(/ \(it ended with \d+\)$/, '');
  }
}

/** A default as in .env.example if it is there, otherwise as in the program. */
function defaultOf(name: string, example: string): string {
  const value = defaults[name];
  if (value === undefined || String(value) === '') return 'unset';
  const isDefault = (env: Env) => String((env as unknown as Record<string, unknown>)[name]) === String(value);
  return `\`${isDefault(validateEnv({ ...REQUIRED, [name]: example })) ? example : value}\``;
}

function settingRow(name: string, example: string): string[] {
  return [codes([name]), name in REQUIRED ? 'required' : defaultOf(name, example), ruleOf(name)];
}

/** docs/reference/settings.md: each setting with its text in .env.example, its default and its valid values. */
export function settingsPage(): string {
  const blocks = readFileSync('.env.example', 'utf8').trim().split(/\n\n+/);
  const parts = blocks.slice(1).flatMap((block) => {
    const lines = block.split('\n');
    if (lines.length === 1) return [`## ${block.slice(2)}\n`];
    return [...block.matchAll(/((?:^# (?![A-Z_]+=).*\n)+)((?:^(?:# )?[A-Z_]+=.*(?:\n|$))+)/gm)].map(
      ([, said = '', settings = '']) => {
        const own = [...settings.matchAll(/^(?:# )?([A-Z_]+)=(.*)/gm)];
        const rows = own.map(([, name = '', example = '']) => settingRow(name, example));
        return `${said.replaceAll(/^# /gm, '')}\n${table(['setting', 'default', 'rule'], rows)}\n`;
      },
    );
  });
  return `${HEAD}\n${parts.join('\n')}`;
}
