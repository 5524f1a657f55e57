// The house order and the walls between the rooms. Formatting and general lint are Biome's; nothing here needs types,
// so that the whole run stays under a few seconds.
import tseslint from 'typescript-eslint';

/** A folder of src/ imports only from itself and from folders that stand before it. Files at the root import any. */
const order = [
  'config',
  'http',
  'database',
  'vault',
  'queue',
  'access',
  'feed',
  'platform',
  'webhooks',
  'people',
  'sessions',
  'recordings',
  'imports',
  'recorder',
  'compliance',
  'operations',
  'cli',
];

const walls = {
  axios: {
    regex: '^axios($|/)',
    message: 'axios belongs to src/platform: call the platform client instead.',
  },
  queue: {
    regex: '^(bullmq|ioredis)($|/)',
    message: 'bullmq and ioredis belong to src/queue and to *.processor.ts: ring the Doorbell instead.',
  },
  prisma: {
    regex: '(^|/)generated/prisma/',
    message: 'The generated Prisma client belongs to src/database and to *.repository.ts.',
  },
};
const always = [
  {
    regex: '^\\.{1,2}/(.*/)?(simulator|demo|bench|harness|faults|test)/',
    message:
      'src/ is the product: it knows nothing of the simulator, the demo, the benchmark, the fault runs or the tests.',
  },
];
const named = [
  { name: '@nestjs/common', importNames: ['forwardRef'], message: 'Two rooms that need each other are one room.' },
  { name: 'process', message: 'The environment is read in src/config only.' },
  { name: 'node:process', message: 'The environment is read in src/config only.' },
];

const restrict = (...patterns) => ({ 'no-restricted-imports': ['error', { paths: named, patterns }] });

/** The rules of one folder: its place in the order, and the walls, each with its doors. */
function folderRules(folder, position) {
  const later = order.slice(position + 1);
  const below = later.length
    ? [
        {
          regex: `^\\.\\./(.*/)?(${later.join('|')})/`,
          message: `src/${folder} imports only from: ${order.slice(0, position).join(', ') || 'nothing else'}.`,
        },
      ]
    : [];
  const shut = Object.entries(walls)
    .filter(([wall]) => !(wall === 'axios' && folder === 'platform'))
    .filter(([wall]) => !(wall === 'queue' && folder === 'queue'))
    .filter(([wall]) => !(wall === 'prisma' && folder === 'database'));
  const without = (door) => shut.filter(([wall]) => wall !== door).map(([, pattern]) => pattern);
  return [
    { files: [`src/${folder}/**/*.ts`], rules: restrict(...always, ...below, ...without()) },
    { files: [`src/${folder}/**/*.processor.ts`], rules: restrict(...always, ...below, ...without('queue')) },
    { files: [`src/${folder}/**/*.repository.ts`], rules: restrict(...always, ...below, ...without('prisma')) },
  ];
}

export default [
  { ignores: ['dist/', 'node_modules/', '.data/', 'coverage/', 'src/generated/', 'prisma/'] },
  {
    files: ['**/*.ts'],
    languageOptions: { parser: tseslint.parser, parserOptions: { ecmaVersion: 2023, sourceType: 'module' } },
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
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'The environment is read in src/config only.' },
      ],
      'no-restricted-syntax': ['error', { selector: 'ImportExpression', message: 'Imports are static in src/.' }],
    },
  },
  { files: ['src/*.ts'], rules: restrict(...always, ...Object.values(walls)) },
  ...order.flatMap(folderRules),
  { files: ['src/config/**/*.ts', 'src/**/*.spec.ts'], rules: { 'no-restricted-properties': 'off' } },
  { files: ['src/cli/**/*.ts'], rules: { 'no-console': 'off' } },
  {
    files: ['simulator/**/*.ts'],
    rules: restrict(walls.axios, walls.queue, {
      regex: '/src/(?!platform/(wire-types|webhook-signature)\\.js$)',
      message: 'The simulator shares only the wire types and the webhook signature with the service.',
    }),
  },
  {
    files: ['src/**/*.ts', 'simulator/**/*.ts', 'demo/**/*.ts', 'harness/**/*.ts', 'faults/**/*.ts'],
    ignores: ['**/*.spec.ts'],
    rules: { 'max-lines': ['error', { max: 300 }] },
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
