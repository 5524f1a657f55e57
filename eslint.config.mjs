// The order of the folders and the boundaries between them. Formatting and general lint are Biome's; nothing here needs types,
// so that the whole run stays under a few seconds.
import { readdirSync } from 'node:fs';
import tseslint from 'typescript-eslint';
import { linearPatterns } from './scripts/linear-patterns.mjs';

/**
 * The folders of `src/`, in their order: a folder imports only from those before it in its own list, and from all that its
 * parent may import (a spec may use its whole module). The files directly in a folder import any of its subfolders, and no
 * subfolder imports them.
 */
const order = {
  words: {},
  config: {},
  text: {},
  errors: {},
  tracing: {},
  monitoring: {},
  http: { problem: {}, request: {}, body: {}, server: {} },
  database: { connect: {} },
  vault: {},
  processes: {},
  queue: { backend: {}, work: {} },
  audit: {},
  access: { identity: {}, keys: {}, 'sign-in': {}, guard: {} },
  idempotency: {},
  feed: {},
  sending: {},
  platform: { contract: {}, http: {}, pauses: {}, upload: {}, clients: {} },
  subscriptions: { push: {} },
  webhooks: { receive: {}, process: {}, admin: {} },
  people: { rules: {}, store: {}, api: {} },
  sessions: { model: {}, read: {}, fetch: {}, processing: {}, create: {}, update: {} },
  fhir: { search: {} },
  recordings: {},
  imports: {
    parse: { row: {}, text: {}, csv: {}, fhir: {} },
    model: {},
    upload: {},
    plan: {},
    run: {},
    api: {},
  },
  recorder: {},
  compliance: {},
  'client-records': {},
  search: {},
  operations: { start: {}, overview: {} },
  console: {},
  cli: { api: {}, output: {}, import: {}, doctor: {}, contract: {}, data: {}, commands: {} },
};

const boundaries = {
  axios: {
    regex: '^axios($|/)',
    message: 'axios belongs to src/platform: call the platform client instead.',
  },
  queue: {
    regex: '^(bullmq|ioredis|@nestjs/bullmq)($|/)',
    message: 'bullmq and ioredis belong to src/queue and to *.processor.ts: use WorkQueues instead.',
  },
  tracing: {
    regex: '^@opentelemetry/',
    message: 'OpenTelemetry belongs to src/tracing.',
  },
  prisma: {
    regex: '(^|/)generated/prisma/',
    message: 'The generated Prisma client belongs to src/database, to *.repository.ts and to *-row.ts.',
  },
  pg: {
    regex: '^pg$|(^|/)database/(database|joined-transaction|after-commit)\\.js$',
    message: 'Prisma begins every transaction (ARCHITECTURE.md): use PrismaService.transaction(work).',
  },
};

/**
 * The files that use `pg`, in a transaction of Prisma (`sql(tx)`) or on connections of their own: the inserts of audit entries
 * and events, and LISTEN. Until their folders are rebuilt, also the chain of the audit log, the leases of pushes, and the
 * rotation of keys. `transport.decorators.ts` only parses URLs.
 */
const pgFiles = [
  'src/audit/audit.ts',
  'src/audit/audit.repository.ts',
  'src/audit/audit-linker.ts',
  'src/audit/chain.repository.ts',
  'src/audit/verify-log.ts',
  'src/config/transport.decorators.ts',
  'src/feed/feed.ts',
  'src/feed/feed-bell.ts',
  'src/people/store/legal-hold.ts',
  'src/people/store/person-users.ts',
  'src/subscriptions/push/attempts.repository.ts',
  'src/vault/rotation.ts',
  'src/webhooks/receive/inbox.writer.ts',
];

/** Folders that still begin their transactions with `pg`. ARCHITECTURE.md names them. */
const pgFolders = ['processes', 'queue', 'imports', 'operations', 'cli'];
const product = (others) => ({
  regex: `^\\.{1,2}/(.*/)?(${others})/`,
  message:
    'src/ is the product: it may not import its client, the simulator, the demo, the benchmark, the fault runs or the tests. A spec may import the harness.',
});
const always = [product('client|simulator|demo|bench|harness|faults|test')];
const alwaysInSpecs = [product('client|simulator|demo|bench|faults|test')];
const ENVIRONMENT = 'The environment is read in src/config, and in src/cli/api/client-env.ts for the command line.';
const named = [
  { name: '@nestjs/common', importNames: ['forwardRef'], message: 'Two modules that need each other are one module.' },
  { name: 'process', message: ENVIRONMENT },
  { name: 'node:process', message: ENVIRONMENT },
];

const restrict = (...patterns) => ({ 'no-restricted-imports': ['error', { paths: named, patterns }] });

/** Forbids a folder to import, at each level above it, the later folders and the files next to them. */
function laterFolders(segments, levels = segments.length) {
  let siblings = order;
  return segments.slice(0, levels).flatMap((name, level) => {
    const names = Object.keys(siblings);
    const later = names.slice(names.indexOf(name) + 1);
    const up = '\\.\\./'.repeat(segments.length - level);
    const place = ['src', ...segments.slice(0, level)].join('/');
    siblings = siblings[name];
    return [
      ...(later.length
        ? [
            {
              regex: `^${up}(${later.join('|')})/`,
              message: `${place}/${name} may import only the folders before it in ${place}/, not ${later.join(', ')}.`,
            },
          ]
        : []),
      ...(level > 0
        ? [{ regex: `^${up}[^/]+$`, message: `The folders of ${place}/ may not import the files directly in it.` }]
        : []),
    ];
  });
}

/** The rules of one folder: its place in the order, and the boundaries, each with its exceptions. */
function folderRules(segments) {
  const [top] = segments;
  const shut = Object.entries(boundaries)
    .filter(([boundary]) => !(boundary === 'axios' && top === 'platform'))
    .filter(([boundary]) => !(boundary === 'queue' && top === 'queue'))
    .filter(([boundary]) => !(['prisma', 'pg'].includes(boundary) && top === 'database'))
    .filter(([boundary]) => !(boundary === 'pg' && pgFolders.includes(top)))
    .filter(([boundary]) => !(boundary === 'tracing' && top === 'tracing'));
  const without = (...exceptions) =>
    shut.filter(([boundary]) => !exceptions.includes(boundary)).map(([, pattern]) => pattern);
  const later = laterFolders(segments);
  const folder = ['src', ...segments].join('/');
  return [
    { files: [`${folder}/**/*.ts`], rules: restrict(...always, ...later, ...without()) },
    { files: [`${folder}/**/*.processor.ts`], rules: restrict(...always, ...later, ...without('queue')) },
    { files: [`${folder}/**/*{.repository,-row}.ts`], rules: restrict(...always, ...later, ...without('prisma')) },
    ...pgFiles
      .filter((file) => file.startsWith(`${folder}/`))
      .map((file) => ({
        files: [file],
        rules: restrict(...always, ...later, ...without('pg', ...(file.endsWith('.repository.ts') ? ['prisma'] : []))),
      })),
    {
      files: [`${folder}/**/*.spec{,-support}.ts`],
      rules: restrict(...alwaysInSpecs, ...laterFolders(segments, 1), ...without()),
    },
  ];
}

/** The rules of a folder and its subfolders. A folder that the order does not name is an error. */
function rulesWithin(folders, parent = []) {
  const place = new URL(`./src/${parent.map((name) => `${name}/`).join('')}`, import.meta.url);
  const strangers = readdirSync(place, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !(entry.name in folders) && entry.name !== 'generated')
    .map((entry) => entry.name);
  if (strangers.length > 0)
    throw new Error(`${place.pathname} has folders without a place in the order: ${strangers}.`);
  return Object.entries(folders).flatMap(([name, inner]) => [
    ...folderRules([...parent, name]),
    ...rulesWithin(inner, [...parent, name]),
  ]);
}

/** The suites that wait for real processes, and what they use. */
const processLayer = [
  'test/process/**',
  'test/support/{collector,databases,health,programs,service,settled-person,webhook-requests}.ts',
];

const sqlLike = (pattern, message) =>
  ['Literal[value', 'TemplateElement[value.raw'].map((node) => ({ selector: `${node}=${pattern}]`, message }));

/** What only the process layer may do: wait for real processes, and move rows in time instead of the clock. */
const realTime = [
  {
    selector: 'ImportDeclaration[source.value=/(node:child_process|[^-]until.js|program.js)$/]',
    message: 'Only test/process waits for real processes. Use the test world (test/world/use-world.ts).',
  },
  ...sqlLike('/UPDATE.*SET[^;]*_at *=[^;]*interval/is', 'Time moves by world.advance, not by SQL.'),
];

/** What Prisma offers and this product avoids. */
const prismaSyntax = [
  {
    selector: 'MemberExpression[property.name="$transaction"]',
    message: 'Use PrismaService.transaction(work), which retries and gives Prisma a new options object.',
  },
  {
    selector: 'CallExpression[callee.property.name=/^find(Many|First)/] Property[key.name=/^(cursor|distinct)$/]',
    message: 'Prisma reads the whole list for it: page by `after` (database/paging.ts).',
  },
];

const usesSql = [
  'MemberExpression[object.property.name="prisma"][property.name=/^(sql|pool|bulkPool)$/]',
  'VariableDeclarator[init.property.name="prisma"] Property[key.name=/^(pool|bulkPool)$/]',
].map((selector) => ({ selector, message: 'Only the listed files use `pg`: use tx.$queryRaw.' }));

/** Of the product, whose tests move the time that its SQL sees. */
const productSyntax = [
  { selector: 'ImportExpression', message: 'Imports are static in src/.' },
  ...sqlLike(
    "/CURRENT_TIMESTAMP|transaction_timestamp|statement_timestamp|'now'/i",
    'SQL takes the time from now() or clock_timestamp(), which tests can move.',
  ),
  {
    selector:
      ':function:has(> Identifier[name="tx"]) MemberExpression[object.property.name="prisma"][property.name!=/^(in|of|sql|afterCommit)$/]',
    message: 'Within a transaction use tx.x, or prisma.in(tx) for a connection, because prisma.x uses another one.',
  },
];

export default [
  { ignores: ['dist/', 'node_modules/', '.data/', 'coverage/', 'src/generated/', 'prisma/'] },
  {
    files: ['**/*.{ts,tsx}'],
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { ecmaVersion: 2023, sourceType: 'module', ecmaFeatures: { jsx: true } },
    },
    plugins: { '@typescript-eslint': tseslint.plugin },
    linterOptions: { noInlineConfig: true },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/ban-ts-comment': ['error', { minimumDescriptionLength: 400 }],
      'no-warning-comments': ['error', { terms: ['todo', 'fixme', 'xxx', 'biome-ignore', 'eslint-disable'] }],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      'no-console': 'error',
      'no-restricted-properties': ['error', { object: 'process', property: 'env', message: ENVIRONMENT }],
      'no-restricted-syntax': ['error', ...productSyntax, ...prismaSyntax, ...usesSql],
    },
  },
  {
    files: [...pgFiles, ...pgFolders.map((folder) => `src/${folder}/**/*.ts`)],
    rules: { 'no-restricted-syntax': ['error', ...productSyntax, ...prismaSyntax] },
  },
  { files: ['src/database/*.ts'], rules: { 'no-restricted-syntax': ['error', ...productSyntax] } },
  // Packages that most processes and commands do not need are loaded on demand.
  {
    files: ['src/tracing/start-tracing.ts', 'src/cli/commands/{audit,contract,keys,service}.command.ts'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: ['src/**/*.ts', 'simulator/**/*.ts'],
    ignores: ['**/*.spec{,-support}.ts'],
    plugins: { patterns: linearPatterns },
    rules: { 'patterns/linear': 'error' },
  },
  { files: ['src/*.ts'], rules: restrict(...always, ...Object.values(boundaries)) },
  ...rulesWithin(order),
  {
    files: ['src/config/**/*.ts', 'src/cli/api/client-env.ts', 'src/**/*.spec.ts'],
    rules: { 'no-restricted-properties': 'off' },
  },
  { files: ['src/cli/**/*.ts'], rules: { 'no-console': 'off' } },
  {
    files: ['simulator/**/*.ts'],
    rules: restrict(boundaries.axios, boundaries.queue, {
      regex: '/src/(?!(platform/contract/(wire-types|session-answer)|webhooks/receive/webhook-signature)\\.js$)',
      message: 'The simulator shares only the wire types and the webhook signature with the service.',
    }),
  },
  {
    files: ['client/**/*.ts'],
    ignores: ['**/*.spec.ts', '**/*.spec-support.ts'],
    rules: {
      ...restrict({
        regex: '^(?!openapi-fetch$|\\./|\\.\\./(sending/)?[\\w-]+\\.js$)',
        message: 'The client is a separate package, also for browsers: it imports only its files and openapi-fetch.',
      }),
      'no-restricted-globals': [
        'error',
        ...['process', 'Buffer'].map((name) => ({ name, message: 'The client runs in browsers, too.' })),
      ],
    },
  },
  {
    files: ['console/**/*.{ts,tsx}'],
    rules: restrict({
      regex: '^(\\.\\./)+(?!client/)(src|simulator|demo|bench|harness|faults|test)/|^openapi-fetch$',
      message: 'The console may use the service only through its client.',
    }),
  },
  {
    files: ['src/**/*.ts', 'simulator/**/*.ts', 'demo/**/*.ts', 'harness/**/*.ts', 'faults/**/*.ts', 'client/**/*.ts'],
    ignores: ['**/*.spec.ts', 'client/schema.ts'],
    rules: { 'max-lines': ['error', { max: 300 }] },
  },
  // Every setting is in one file, with its text.
  { files: ['src/config/env.ts'], rules: { 'max-lines': 'off' } },
  {
    files: ['src/**/*.spec.ts'],
    rules: { 'no-restricted-syntax': ['error', ...productSyntax, ...realTime] },
  },
  {
    files: ['test/**/*.ts', '{bench,client,demo,faults,harness,simulator}/**/*.spec.ts'],
    ignores: processLayer,
    rules: { 'no-restricted-syntax': ['error', ...realTime] },
  },
  {
    files: ['**/index.ts', '**/{utils,helpers,common}/**/*.ts', '**/{utils,helper,helpers,common}.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: 'Program', message: 'Name a file after what it holds: no barrels, utils, helpers or common.' },
      ],
    },
  },
];
