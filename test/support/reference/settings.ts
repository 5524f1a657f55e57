import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { Env } from '../../../src/config/env.js';
import { validateEnv } from '../../../src/config/env.validation.js';
import { codes, table } from './table.js';

/** A setting as `src/config/env.ts` declares it. */
interface Setting {
  name: string;
  /** The heading above it. */
  heading: string | undefined;
  /** Empty if the text of the setting before it covers both. */
  text: string;
  /** Undefined for a required one without `@example`. */
  shown: string | undefined;
  isRequired: boolean;
}

const defaults = new Env() as unknown as Record<string, unknown>;

/** Values of the required settings. */
const key = (id: string) => `${id}:${Buffer.alloc(32, 7).toString('base64')}`;
const REQUIRED: Record<string, string> = {
  PLATFORM_BASE_URL: 'https://api.platform.example',
  PLATFORM_API_KEY: 'key',
  PLATFORM_WEBHOOK_SECRET: 'a-webhook-secret-of-more-than-32-letters',
  ADMIN_API_KEY: 'an-admin-key-of-more-than-32-letters-and-9',
  DATABASE_URL: 'postgresql://127.0.0.1/notebridge',
  DATA_KEYS: key('k1'),
  FINGERPRINT_KEYS: key('f1'),
  AUDIT_KEYS: key('a1'),
};

/** The settings of the class `Env`, in its order. */
function settingsOfEnv(): Setting[] {
  const source = readFileSync('src/config/env.ts', 'utf8');
  const file = ts.createSourceFile('env.ts', source, ts.ScriptTarget.Latest, true);
  const env = file.statements.find(ts.isClassDeclaration);
  const members: readonly ts.ClassElement[] = env?.members ?? [];
  return members.filter(ts.isPropertyDeclaration).map((member) => {
    const name = member.name.getText();
    const docs = ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc);
    const example = ts.getJSDocTags(member).find(({ tagName }) => tagName.text === 'example');
    const trivia = source.slice(member.getFullStart(), member.getStart(file, true));
    return {
      name,
      heading: /^ *\/\/ (.+)$/m.exec(trivia)?.[1],
      text: docs.map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? '').join(' '),
      shown: ts.getTextOfJSDocComment(example?.comment) ?? (member.initializer ? String(defaults[name]) : undefined),
      isRequired: member.exclamationToken !== undefined,
    };
  });
}

/** Characters of a line of `.env.example`. */
const LINE = 120;

function wrapped(text: string): string {
  let wrapped = '';
  let line = '#';
  for (const word of text.split(/\s+/)) {
    if (line.length + 1 + word.length > LINE) {
      wrapped += `${line}\n`;
      line = '#';
    }
    line += ` ${word}`;
  }
  return `${wrapped}${line}\n`;
}

const ABOUT = `# Settings of notebridge. Copy this file to .env and fill in the required ones; docker compose and npm start read that
# file. A line that begins with # shows the default, or an example if the text mentions no default.

# Any setting, such as a secret, can be in a file instead: set the same name with _FILE to its path. A line break at its
# end is ignored. With docker compose, leave secrets and keys empty here: they are in ./secrets, where
# deploy/make-secrets.sh writes them.
# PLATFORM_API_KEY_FILE=/run/secrets/platform-api-key

# The images of docker compose can be pinned by digest, which docker buildx imagetools inspect postgres:18 shows. If unset,
# the tag is used.
# NODE_IMAGE=node:24-bookworm-slim@sha256:…
# POSTGRES_IMAGE=postgres:18@sha256:…
# REDIS_IMAGE=redis:8@sha256:…
`;

/** `.env.example`. */
export function envExample(): string {
  const blocks = settingsOfEnv().map(({ name, heading, text, shown = '', isRequired }) => {
    const head = heading === undefined ? '' : `\n# ${heading}\n\n`;
    return `${head}${text === '' ? '' : wrapped(text)}${isRequired ? '' : '# '}${name}=${shown}\n`;
  });
  return `${ABOUT}${blocks.join('')}`;
}

const HEAD = `# Settings

For the operator: every setting, with its default and its rule. Set them in the environment or in \`.env\`, which \`npm start\` and docker compose read; the environment
wins. A start with invalid settings fails and names each one.
`;

/** A value that almost no setting accepts. */
const WRONG = '\u0001';

/** The rule of a setting, from the error message of a start; empty if any text is valid. */
function ruleOf(name: string): string {
  try {
    validateEnv({ ...REQUIRED, [name]: WRONG });
    return '';
  } catch (error) {
    const line = (error as Error).message.split('\n').find((each) => each.startsWith(`  ${name} `)) ?? '';
    return line.slice(name.length + 3);
  }
}

/** A default as in .env.example if it is there, otherwise as in the program. */
function defaultOf({ name, shown, isRequired }: Setting): string {
  if (isRequired) return 'required';
  const value = defaults[name];
  if (value === undefined || String(value) === '') return 'unset';
  const read = validateEnv({ ...REQUIRED, [name]: shown }) as unknown as Record<string, unknown>;
  return `\`${String(read[name]) === String(value) ? shown : value}\``;
}

/** docs/reference/settings.md: each setting with its text, its default and its valid values. */
export function settingsPage(): string {
  const parts: string[] = [];
  let rows: string[][] = [];
  for (const setting of settingsOfEnv()) {
    if (setting.heading !== undefined) parts.push(`## ${setting.heading}\n`);
    if (setting.text !== '') parts.push(`${setting.text}\n`);
    const row = [codes([setting.name]), defaultOf(setting), ruleOf(setting.name)];
    rows = setting.text === '' ? [...rows, row] : [row];
    if (setting.text === '') parts.pop();
    parts.push(`${table(['setting', 'default', 'rule'], rows)}\n`);
  }
  return `${HEAD}\n${parts.join('\n')}`;
}
